package resource_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// BenchmarkChange changes one endpoint, and encodes what comes of it. It costs what
// the service does, however many there are beside it.
func BenchmarkChange(b *testing.B) {
	for _, services := range []int{100, 28_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			builder := catalog.NewBuilder(nil)
			var events []model.Event
			for i := range services {
				s := service("first", fmt.Sprintf("many-%d", i), fmt.Sprintf("many-%d.example", i))
				events = append(events, model.Upsert{Record: s})
				for e := range 17 {
					events = append(events, model.Upsert{Record: endpoint(s, fmt.Sprintf("10.%d.%d.%d", i>>8, i&255, e+1), model.Healthy)})
				}
			}
			builder.Apply(1, events)
			translator := resource.NewTranslator(resource.OverXDS(), resource.Options{Wrapped: true})
			translator.Step(builder.Snapshot(), catalog.Change{}, true, "")
			moving := endpoint(service("first", "many-7"), "10.9.9.9", model.Healthy)
			encoded := 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				event := model.Event(model.Upsert{Record: moving})
				if i%2 == 1 {
					event = model.Delete{Record: moving}
				}
				change := builder.Apply(uint64(i+2), []model.Event{event})
				u := translator.Step(builder.Snapshot(), change, true, "")
				c := u.Changed[0]
				subject, _ := u.World.Find(u.World.View(c.Row, world.Client{}), c.Row, c.Name)
				encoded += len(subject.Encode().Body)
			}
			b.ReportMetric(float64(encoded)/float64(b.N), "B/resource")
		})
	}
}

package envoy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Views that see the same services share the bytes of what is answered, but for those
// services that one of them knows by a bare name. A service that comes leaves the rest.
func TestViewsShareAnswers(t *testing.T) {
	t.Parallel()
	const services, namespaces = 400, 20
	builder, step := catalog.NewBuilder([]string{"s"}), answeringSettings().Begin(nil)
	change := builder.Apply(1, kubernetesServices(services, namespaces))
	u := step(builder.Snapshot(), change, true, "root")
	pieces := func(namespace int) map[*byte]bool {
		e, all := answersFrom(t, u.World, namespace), map[*byte]bool{}
		for text := range e.Tail.All() {
			all[&text[0]] = true
		}
		return all
	}
	common := func(a, b map[*byte]bool) (n int) {
		for piece := range a {
			if b[piece] {
				n++
			}
		}
		return n
	}
	one, other := pieces(1), pieces(2)
	if n := common(one, other); len(one) != services || n != services-2*services/namespaces {
		t.Errorf("of %d and %d pieces they share %d", len(one), len(other), n)
	}
	change = builder.Apply(2, []model.Event{edgeService("added.com", 0, model.ResolutionStatic, model.Port{Number: 80, Name: "http", Protocol: "HTTP"})})
	u = step(builder.Snapshot(), change, true, "root")
	if after := pieces(1); len(after) != services+1 || common(one, after) != services {
		t.Errorf("with one service more there are %d pieces, %d of them as before", len(after), common(one, after))
	}
}

func answersFrom(tb testing.TB, w world.World, namespace int) world.Encoded {
	tb.Helper()
	subject, ok := w.Find(w.View(ListenerType, sidecarIn(fmt.Sprintf("ns-%d", namespace))), ListenerType, "dns")
	if !ok {
		tb.Fatal("lookups are not answered")
	}
	return subject.Encode()
}

func BenchmarkAnswers(b *testing.B) {
	for _, n := range []int{10_000, 28_000} {
		own := kubernetesServices(n, 500)
		b.Run(fmt.Sprintf("%d-services", n), func(b *testing.B) { benchmarkAnswers(b, own) })
		without := slices.Clone(own)
		for i, event := range without {
			u, _ := event.(model.Upsert)
			s, _ := u.Record.Spec.(model.Service)
			s.Addresses = model.List[string]{}
			u.Record.Spec = s
			without[i] = u
		}
		b.Run(fmt.Sprintf("%d-services-without-addresses", n), func(b *testing.B) { benchmarkAnswers(b, without) })
	}
}

func benchmarkAnswers(b *testing.B, services []model.Event) {
	b.Helper()
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, services)
	u := answeringSettings().Begin(nil)(builder.Snapshot(), catalog.Change{}, true, "root")
	b.ReportAllocs()
	for b.Loop() {
		e := answersFrom(b, u.World, 1)
		b.ReportMetric(float64(e.Size()), "bytes")
	}
}

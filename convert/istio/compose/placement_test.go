package compose

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// Whatever becomes of a service, a placement that follows it has the objects that are
// drafted of it from nothing, in their order, and tells of each that is another one.
func TestPlacementFollowsItsService(t *testing.T) {
	t.Parallel()
	followed := 0
	rapid.Check(t, func(t *rapid.T) {
		layout, exists := drawLayout(t), map[string]bool{}
		layout.Exists = func(name string) bool { return exists[name] }
		builder := catalog.NewBuilder([]string{"first", "second"})
		change := builder.Apply(1, append(drawService(t), manyEndpoints(rapid.IntRange(4, 12).Draw(t, "more"))...))
		key := catalog.ServiceKey{Namespace: "shop", Host: "x.example.com"}
		var placed *Placement
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			service, ok := builder.Snapshot().Service(key)
			if !ok {
				return
			}
			fresh := DraftService(service, layout)
			if placed != nil && followedBy(t, placed, service, change, layout.Exists, fresh) {
				followed++
			} else {
				placed = DraftService(service, layout).Placement()
			}
			for _, p := range fresh.Parts {
				if exists[p.Name] = rapid.IntRange(0, 9).Draw(t, "there") > 0; !exists[p.Name] {
					delete(exists, p.Name)
				}
			}
			change = builder.Apply(uint64(step+2), drawChange(t)) //nolint:gosec // a few
		}
	})
	if followed == 0 {
		t.Error("no change was followed")
	}
}

// followedBy reports whether a placement followed its service, and fails if it did so wrongly.
func followedBy(t *rapid.T, p *Placement, s *catalog.Service, change catalog.Change, exists func(string) bool, fresh Draft) bool {
	before, addresses := textsOf(p), map[string]struct{}{}
	for id := range change.Services[s.Key].Endpoints {
		addresses[id.Address] = struct{}{}
	}
	changed, ok := p.Update(s, addresses, exists)
	if !ok {
		return false
	}
	after, names := textsOf(p), make([]PartName, 0, len(fresh.Parts))
	for _, want := range fresh.Parts {
		name := PartName{want.Kind, want.Name}
		names = append(names, name)
		if is := after[name]; is != textOf(want) {
			t.Fatalf("%v is %q, want %q", name, is, textOf(want))
		}
	}
	if len(after) != len(names) || fmt.Sprint(p.LeftOut()) != fmt.Sprint(fresh.LeftOut) {
		t.Fatalf("%d parts, left out %v; want %d, %v", len(after), p.LeftOut(), len(names), fresh.LeftOut)
	}
	for i, part := range p.Parts(names) {
		if part.Name != names[i].Name {
			t.Fatalf("%s comes where %s should", part.Name, names[i].Name)
		}
	}
	for _, all := range []map[PartName]string{before, after} {
		for name := range all {
			if _, told := changed[name]; before[name] != after[name] && !told {
				t.Fatalf("%v changes from %q to %q, which is not said", name, before[name], after[name])
			}
		}
	}
	return true
}

// textsOf has what each object says.
func textsOf(p *Placement) map[PartName]string {
	var names []PartName
	for name := range p.workloads {
		names = append(names, PartName{istio.WorkloadEntry, name})
	}
	for name := range p.at {
		names = append(names, PartName{istio.ServiceEntry, name})
	}
	all := map[PartName]string{}
	for _, part := range p.Parts(names) {
		all[PartName{part.Kind, part.Name}] = textOf(part)
	}
	return all
}

func textOf(p DraftPart) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.Spec())
	return fmt.Sprint(p.Sources, p.Labels, string(text), err)
}

// manyEndpoints are some beside those that are drawn.
func manyEndpoints(n int) (events []model.Event) {
	for i := range n {
		events = append(events, endpointAt(i, model.Endpoint{}))
	}
	return events
}

// endpointAt is the record of an endpoint of the first source. Its address is its own
// unless it says one.
func endpointAt(i int, e model.Endpoint) model.Upsert {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "shop", Name: "x"}}
	ref := owner
	ref.Kind, ref.Name = model.KindEndpoint, fmt.Sprintf("x/%d", i)
	if e.Address == "" {
		e.Address = fmt.Sprintf("10.1.0.%d", i)
	}
	return model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}}
}

// drawChange draws changes of endpoints, or now and then of all that is said.
func drawChange(t *rapid.T) (events []model.Event) {
	if rapid.IntRange(0, 9).Draw(t, "redefined") == 0 {
		return drawService(t)
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		i := rapid.IntRange(0, 14).Draw(t, "endpoint")
		e := model.Endpoint{Weight: rapid.Uint32Range(1, 9).Draw(t, "weight")}
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			events = append(events, model.Delete{Record: endpointAt(i, e).Record})
			continue
		case 1:
			e = drawEndpoint(t, []model.Port{{Name: "a"}, {Name: "b"}, {Name: "c"}})
		case 2:
			e.Address = fmt.Sprintf("10.1.0.%d", rapid.IntRange(0, 3).Draw(t, "shared address"))
		}
		events = append(events, endpointAt(i, e))
	}
	return events
}

package catalog_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// The services of a port are those that a viewer sees and that have it, whatever came
// and went before; by address, those of them that have the address.
func TestServicesOfAPortAreThoseThatHaveIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			b.Apply(uint64(i+1), commit)
			for _, namespace := range []string{"", "x", "y"} {
				checkPorts(t, b.Snapshot(), catalog.Viewer{Namespace: namespace})
			}
		}
	})
}

func checkPorts(t *rapid.T, s *catalog.Snapshot, v catalog.Viewer) {
	for _, number := range []uint32{80, 81, 82} {
		var want []catalog.ServiceKey
		byAddress := map[string][]catalog.ServiceKey{}
		for service := range s.Visible(v) {
			if _, ok := service.Port(number); !ok {
				continue
			}
			want = append(want, service.Key)
			for address := range service.EveryAddress() {
				byAddress[address] = append(byAddress[address], service.Key)
			}
		}
		if got := keysOf(s.Port(number).Visible(v)); !slices.Equal(got, want) {
			t.Fatalf("port %d has %v, not %v", number, got, want)
		}
		for _, address := range []string{"10.9.9.9", "fd00::1", "10.8.0.0"} {
			if got, want := keysOf(s.Port(number).VisibleAt(v, address)), slices.Compact(byAddress[address]); !slices.Equal(got, want) {
				t.Fatalf("port %d has %v at %s, not %v", number, got, address, want)
			}
		}
	}
}

func keysOf(services func(func(catalog.ServiceDefinition) bool)) (keys []catalog.ServiceKey) {
	for s := range services {
		keys = append(keys, s.Key)
	}
	return keys
}

// What does not change the definition of a service of the port keeps the pointer, and
// what does replaces it.
func TestServicesOfAPortKeepTheirPointer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			before := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			redefined := map[uint32]bool{}
			for key, c := range change.Services {
				if c.Old != nil && c.New != nil && c.Old.Definition == c.New.Definition {
					continue
				}
				for _, s := range []*catalog.Snapshot{before, b.Snapshot()} {
					for service := range s.ByHost(key.Host) {
						for _, port := range service.Ports {
							redefined[port.Number] = true
						}
					}
				}
			}
			for _, number := range []uint32{80, 81} {
				if same := before.Port(number) == b.Snapshot().Port(number); !same && !redefined[number] {
					t.Fatalf("the services of port %d were replaced by %v", number, commit)
				} else if same && redefined[number] && before.Port(number) != nil {
					t.Fatalf("the services of port %d are as they were after %v", number, commit)
				}
			}
		}
	})
}

// Services of one host that go in one step leave nothing behind at each other's ports: a
// service of the host that comes later is seen by everybody.
func TestServicesOfAHostThatGoTogetherAreForgotten(t *testing.T) {
	t.Parallel()
	in := func(namespace string, number uint32) model.Record {
		r := service("s", "shop-"+namespace, "h.example")
		r.Namespace = namespace
		spec, _ := r.Spec.(model.Service)
		spec.Ports = model.ListOf(model.Port{Number: number, Name: "http", Protocol: "HTTP"})
		r.Spec = spec
		return r
	}
	one, two, three := in("one", 80), in("two", 90), in("three", 80)
	b := catalog.NewBuilder([]string{"s"})
	b.Apply(1, []model.Event{model.Upsert{Record: one}, model.Upsert{Record: two}})
	b.Apply(2, []model.Event{model.Delete{Record: one}, model.Delete{Record: two}})
	for _, number := range []uint32{80, 90} {
		if got := b.Snapshot().Port(number); got != nil {
			t.Errorf("port %d has %v still", number, got)
		}
	}
	b.Apply(3, []model.Event{model.Upsert{Record: three}})
	for _, namespace := range []string{"one", "two", "three", ""} {
		if got := keysOf(b.Snapshot().Port(80).Visible(catalog.Viewer{Namespace: namespace})); len(got) != 1 {
			t.Errorf("%q sees %v", namespace, got)
		}
	}
}

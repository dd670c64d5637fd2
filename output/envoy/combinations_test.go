package envoy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// shape is a form in which objects ask for so many combinations of host, address and port.
type shape struct {
	name     string
	objects  func(n int) []model.Event
	protocol string
}

// shapes are the forms in which n combinations cost the most.
func shapes() []shape {
	of := func(name, protocol string, objects func(n int, protocol string) []model.Event) shape {
		return shape{name, func(n int) []model.Event { return objects(n, protocol) }, protocol}
	}
	return []shape{
		of("hosts of one address", "HTTP", func(n int, p string) []model.Event { return []model.Event{asking("a", 0, n, 1, 1, p)} }),
		of("hosts of one address, TLS", "TLS", func(n int, p string) []model.Event { return []model.Event{asking("a", 0, n, 1, 1, p)} }),
		of("addresses of one host", "HTTP", func(n int, p string) []model.Event { return []model.Event{asking("a", 0, 1, n, 1, p)} }),
		of("addresses of one host, TCP", "TCP", func(n int, p string) []model.Event {
			return many(10, func(i int) model.Event { return asking("a", i, 1, n/10, 1, p) })
		}),
		of("ports of one host", "HTTP", func(n int, p string) []model.Event { return []model.Event{asking("a", 0, 1, 1, n, p)} }),
		of("all alike", "HTTP", func(n int, p string) []model.Event { return []model.Event{asking("a", 0, n/100, 20, 5, p)} }),
		of("objects of one address", "TCP", func(n int, p string) []model.Event {
			return many(n, func(i int) model.Event { return asking("a", i, 1, 1, 1, p) })
		}),
		of("objects of the same addresses, TLS", "TLS", func(n int, p string) []model.Event {
			return many(10, func(i int) model.Event { return asking("a", i, n/1000, 20, 5, p) })
		}),
		of("namespaces", "HTTP", func(n int, p string) []model.Event {
			return many(10, func(i int) model.Event { return asking("n"+strconv.Itoa(i), 0, n/1000, 20, 5, p) })
		}),
		of("namespaces, TLS", "TLS", func(n int, p string) []model.Event {
			return many(10, func(i int) model.Event { return asking("n"+strconv.Itoa(i), 0, n/1000, 20, 5, p) })
		}),
		of("blocks and addresses", "", func(n int, _ string) []model.Event {
			blocks := asking("a", 0, 1, n/2, 1, "TCP").(model.Upsert) //nolint:forcetypeassert // it is one
			spec := blocks.Record.Spec.(model.Service)                //nolint:forcetypeassert // it is one
			list := spec.Addresses.Slice()
			for i := range list {
				list[i] += "/31"
			}
			spec.Addresses = model.ListOf(list...)
			blocks.Record.Spec = spec
			return []model.Event{blocks, asking("a", 1, 1, n/2, 1, "HTTP")}
		}),
	}
}

func many(n int, of func(i int) model.Event) (events []model.Event) {
	for i := range n {
		events = append(events, of(i))
	}
	return events
}

// asking is a service object with so many hosts, addresses and ports. The addresses are the
// same for all of them.
func asking(namespace string, object, hosts, addresses, ports int, protocol string) model.Event {
	s := model.Service{Resolution: model.ResolutionStatic}
	var h, a []string
	var p []model.Port
	for i := range hosts {
		h = append(h, fmt.Sprintf("h%d.o%d.example.com", i, object))
	}
	for i := range addresses {
		a = append(a, netip.AddrFrom4([4]byte{10, 1, byte(i >> 7), byte(i << 1)}).String())
	}
	for i := range ports {
		p = append(p, model.Port{Number: uint32(1000 + i), Name: fmt.Sprint("p", i), Protocol: protocol}) //nolint:gosec // few
	}
	s.Hosts, s.Addresses, s.Ports = model.ListOf(h...), model.ListOf(a...), model.ListOf(p...)
	return model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: namespace, Name: fmt.Sprint("o", object)}},
		Spec: s,
	}}
}

// What is done for services grows as they ask for more combinations of host, address and
// port, and not with the square of that. It is measured in bytes that are allocated, which
// do not depend on the machine.
func TestWorkGrowsWithCombinations(t *testing.T) {
	const few, times, slack = 1000, 8, 2
	for _, shape := range shapes() {
		t.Run(shape.name, func(t *testing.T) {
			work := func(n int) map[string]uint64 {
				c := combined(shape.objects(n))
				is := map[string]uint64{"merge": allocated(func() { combined(shape.objects(n)) })}
				var w world.World
				is["publish"] = allocated(func() { w = c.publish() })
				is["translate"] = allocated(func() { translate(w, sidecarIn("a")) })
				is["conflicts"] = allocated(func() { c.conflicts() })
				return is
			}
			less, more := work(few), work(few*times)
			for of, n := range less {
				if more[of] > n*times*slack+1<<20 {
					t.Errorf("to %s takes %d bytes for %d combinations, and %d for %d times as many", of, n, few, more[of], times)
				}
			}
		})
	}
}

// allocated returns how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A report of conflicts ends with the request for it, and what was not found then is found
// for the next one.
func TestConflictsEndWithTheirContext(t *testing.T) {
	c := combined([]model.Event{asking("a", 0, 3, 3, 3, "TLS"), asking("a", 1, 3, 3, 3, "HTTP")})
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the request has ended"))
	of := NewTranslator().Conflicts(ended, c.builder.Snapshot())
	for s := range c.builder.Snapshot().Services() {
		if list := of(s); len(list) > 0 {
			t.Errorf("%s has %d conflicts", s.Key, len(list))
		}
	}
	if c.conflicts() == 0 {
		t.Error("there are no conflicts")
	}
}

// BenchmarkCombinations measures what a combination costs, by the number that there are and
// by the form in which objects ask for them: to merge, to publish, to translate for one
// sidecar, and to report conflicts. None of it is to grow with the number.
func BenchmarkCombinations(b *testing.B) {
	for _, shape := range shapes() {
		for _, n := range []int{1_000, 5_000, 10_000} {
			name := fmt.Sprintf("%s/%d", shape.name, n)
			measure := func(of string, do func()) {
				b.Run(name+"/"+of, func(b *testing.B) {
					for b.Loop() {
						do()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/combination")
				})
			}
			measure("merge", func() { combined(shape.objects(n)) })
			measure("publish", func() { combined(shape.objects(n)).publish() })
			w := combined(shape.objects(n)).publish()
			measure("translate", func() { translate(w, sidecarIn("a")) })
			measure("conflicts", func() { combined(shape.objects(n)).conflicts() })
		}
	}
}

// combination is a catalog after its first change.
type combination struct {
	builder *catalog.Builder
	change  catalog.Change
}

func combined(events []model.Event) combination {
	builder := catalog.NewBuilder([]string{"s"})
	return combination{builder, builder.Apply(1, events)}
}

func (c combination) publish() world.World {
	settings := NewTranslator()
	return settings.Begin(nil)(c.builder.Snapshot(), c.change, true, "root").World
}

func (c combination) conflicts() (n int) {
	of := NewTranslator().Conflicts(context.Background(), c.builder.Snapshot())
	for s := range c.builder.Snapshot().Services() {
		n += len(of(s))
	}
	return n
}

// translate makes all that a client is sent, and returns its size.
func translate(w world.World, c world.Client) (size int) {
	for _, r := range []world.Row{ListenerType, RouteType, VirtualHostType} {
		view := w.View(r, c)
		for name := range w.Names(view, r) {
			subject, ok := w.Find(view, r, name)
			if !ok {
				continue
			}
			for _, to := range []string{wire.ClusterURL, wire.RouteURL, wire.VirtualHostURL} {
				if from, is := subject.(world.Referrer); is {
					for range from.Refers(to) { //nolint:revive // the walk is what is measured
					}
				}
			}
			e := subject.Encode()
			size += e.Size()
		}
	}
	return size
}

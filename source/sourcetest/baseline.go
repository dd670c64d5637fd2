package sourcetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// listed is the name of the source that baselines belong to.
const listed = "listed"

// Supervised is a supervisor that judges drops of a source while it runs the source.
type Supervised interface {
	source.Judge
	Run(ctx context.Context) error
}

// RunBaseline checks judgements of baselines from outside. Supervise returns the
// subject: it runs a source in a store and judges by the default terms.
func RunBaseline(t *testing.T, supervise func(name string, src source.Source, s supervise.Store) Supervised) {
	t.Helper()
	check(t, func(ctx context.Context, rt *rapid.T) {
		b := &baselines{t: rt, ctx: ctx, store: store.NewMemory(store.Config{}), supervise: supervise, registry: &registry{}, bases: map[string]*base{}}
		b.run()
	})
}

// baselines is one history of processes that run a source one after the other. Other
// systems hand over baselines of it.
type baselines struct {
	diary
	t         *rapid.T
	ctx       context.Context //nolint:containedctx // of the whole history
	supervise func(string, source.Source, supervise.Store) Supervised

	registry *registry
	process  int
	store    Store
	judge    Supervised
	kill     context.CancelFunc
	ended    chan struct{}
	bases    map[string]*base
}

// base is a baseline of another system.
type base struct {
	source.Baseline
	process int // in which it was handed over; 0 if it was not
	judged  time.Time
	changes int // changes of the registry by then
	held    map[thing]bool
}

// thing is a service, or with a socket one of its endpoints.
type thing struct {
	service string
	socket  uint64
}

func (b *baselines) run() {
	for n := range rapid.IntRange(1, 3).Draw(b.t, "baselines") {
		name := fmt.Sprint("baseline-", n)
		b.bases[name] = &base{Baseline: source.Baseline{Name: name, Source: listed, Where: "that are elsewhere", Objects: b.drawObjects()}}
	}
	b.registry.services = b.drawServices()
	b.log("the registry has %v", b.registry.services)
	b.start()
	for range rapid.IntRange(1, 25).Draw(b.t, "steps") {
		b.step()
		time.Sleep(10 * time.Millisecond) // until every view has come so far
		synctest.Wait()
		b.check()
	}
	b.registry.set(func() { b.registry.broken = false })
	b.pass(240)
	b.settled()
	b.stop()
}

// start begins a process that runs the source. Judgements of the process before do
// not count for baselines handed over to this one.
func (b *baselines) start() {
	b.process++
	b.log("process %d starts", b.process)
	ctx, kill := context.WithCancel(b.ctx)
	b.kill, b.ended = kill, make(chan struct{})
	synctest.Wait()
	b.registry.set(func() { b.registry.listings = 0 })
	judge, ended := b.supervise(listed, b.registry, b.store), b.ended
	b.judge = judge
	go func() {
		defer close(ended)
		_ = judge.Run(ctx)
	}()
}

func (b *baselines) stop() {
	b.kill()
	<-b.ended
}

// step draws one event and makes it happen.
func (b *baselines) step() {
	switch rapid.IntRange(0, 9).Draw(b.t, "what") {
	case 0, 1:
		services := b.drawServices()
		b.registry.set(func() { b.registry.services, b.registry.changes = services, b.registry.changes+1 })
		b.log("the registry has %v", services)
	case 2:
		b.registry.set(func() { b.registry.broken = !b.registry.broken })
		b.log("the registry is broken: %t", b.registry.broken)
	case 3, 4, 5:
		b.offer()
	case 6:
		if rapid.IntRange(0, 2).Draw(b.t, "restarts") == 0 {
			b.stop()
			b.start()
		}
	default:
		b.pass(rapid.IntRange(1, 90).Draw(b.t, "seconds"))
	}
}

// pass lets time pass, and checks the judgements meanwhile.
func (b *baselines) pass(seconds int) {
	b.log("%d seconds pass", seconds)
	for range seconds {
		time.Sleep(time.Second)
		synctest.Wait()
		b.check()
	}
}

// offer hands a baseline over. If its process has done so before, it counts once.
func (b *baselines) offer() {
	name := rapid.SampledFrom(b.names()).Draw(b.t, "offers")
	one := b.bases[name]
	if one.process != 0 && one.process != b.process {
		return // its name belongs to a process that is gone
	}
	b.log("%s is handed over: %v", name, one.Objects)
	one.process = b.process
	if err := b.judge.Offer(b.ctx, one.Baseline); err != nil {
		b.violated("hand over %s: %v", name, err)
	}
}

func (b *baselines) names() (list []string) {
	for name := range b.bases {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// hosts are the possible services.
var hosts = []string{"a.example", "b.example", "c.example"}

// drawServices draws the number of endpoints of each service.
func (b *baselines) drawServices() map[string]int {
	services := map[string]int{}
	for _, host := range rapid.SliceOfNDistinct(rapid.SampledFrom(hosts), 0, 3, rapid.ID).Draw(b.t, "services") {
		services[host] = rapid.SampledFrom([]int{0, 1, 5, 12, 30}).Draw(b.t, "endpoints")
	}
	return services
}

func (b *baselines) drawObjects() (list []source.BaselineObject) {
	services := b.drawServices()
	for _, host := range hosts {
		n, has := services[host]
		if !has {
			continue
		}
		o := source.BaselineObject{Kind: model.KindService, Namespace: "ns", Name: host, Object: "Thing ns/" + host}
		for i := range n {
			o.Endpoints = append(o.Endpoints, source.Socket(address(host, i), "", 0))
		}
		list = append(list, o)
	}
	return list
}

func address(host string, i int) string {
	return fmt.Sprintf("10.0.%d.%d", slices.Index(hosts, host), i)
}

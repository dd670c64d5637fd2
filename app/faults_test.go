package app

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/store"
)

// haunted is a store of which reading panics.
type haunted struct {
	Records
	ghosts  atomic.Int32 // panics to come
	watches atomic.Int32
}

func (h *haunted) Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error] {
	h.watches.Add(1)
	return func(yield func(model.Batch, error) bool) {
		for batch, err := range h.Records.Watch(ctx, f) {
			if h.ghosts.Add(-1) >= 0 {
				panic("a ghost")
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// tells is a source that lists the hosts that a test names.
type tells struct {
	source.Settings // has no more than is defined here
	hosts           chan []string
}

func (s tells) Open(source.Env) source.Source { return s }
func (tells) Warnings() []string              { return nil }

// Run implements [source.Source].
func (s tells) Run(ctx context.Context, sink source.Sink) error {
	for {
		select {
		case hosts := <-s.hosts:
			var l model.Listing
			for _, host := range hosts {
				ref := model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: host}}
				l.Objects = append(l.Objects, model.Object{Record: model.Record{Ref: ref, Spec: model.Service{
					Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Location: model.MeshInternal,
					Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
				}}})
			}
			if err := sink.Replace(ctx, l); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takes is an output that keeps the hosts that changes name. While it fails, taking a
// snapshot panics, before or after that is noted.
type takes struct {
	output.Settings // has no more than is defined here

	mu           sync.Mutex // guards the rest
	hosts        map[string]bool
	fails, after bool
	drains       time.Duration // how long it takes to end
}

// fail has it fail from now on, or no longer.
func (o *takes) fail(fails, after bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails, o.after = fails, after
}

func (o *takes) Open(context.Context, output.Env) (output.Output, error) { return o, nil }
func (*takes) Warnings() []string                                        { return nil }
func (*takes) Report() output.Report                                     { return output.Report{} }

// Run implements [output.Output].
func (o *takes) Run(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(o.drains)
	return nil
}

// Publish implements [output.Output].
func (o *takes) Publish(_ *catalog.Snapshot, change catalog.Change, _ bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fails && !o.after {
		panic("a bug")
	}
	for key, c := range change.Services {
		if delete(o.hosts, key.Host); c.New != nil {
			o.hosts[key.Host] = true
		}
	}
	if o.fails {
		panic("a bug")
	}
}

// frail is an Isthmus in a bubble that something is wrong with.
type frail struct {
	*testing.T
	*App
	store  *haunted
	config *config.Config
	first  chan []string // what its source lists
	good   *takes
	bad    *takes
	reload chan os.Signal
	stop   context.CancelFunc
	admin  *http.Client
	log    strings.Builder
}

func inFrail(t *testing.T, test func(f *frail)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &frail{
			T: t, first: make(chan []string), good: &takes{hosts: map[string]bool{}}, bad: &takes{hosts: map[string]bool{}},
			reload: make(chan os.Signal),
		}
		f.config = &config.Config{
			Instance: "one", RootNamespace: "istio-system", Admin: config.Admin{Listen: "127.0.0.1:0"},
			Sources: []config.Source{{Name: "first", Kind: "file", Settings: tells{hosts: f.first}, Hold: hold.Default()}},
			Outputs: config.Outputs{{Kind: "xds", Settings: f.bad}, {Kind: "mcp", Settings: f.good}},
		}
		f.serve()
		test(f)
	})
}

func (f *frail) serve() {
	m, listener := thisMachine(), bufconn.Listen(64<<10)
	m.Memory = func(c store.Config) Records {
		f.store = &haunted{Records: store.NewMemory(c)}
		return f.store
	}
	m.Listen = func(context.Context, string, string) (net.Listener, error) { return listener, nil }
	m.Load = func(string) (*config.Config, error) { return f.config, nil }
	m.Watch = func(ctx context.Context, _ string, _ *slog.Logger, _ func()) { <-ctx.Done() }
	ctx, cancel := context.WithCancel(context.Background())
	a, err := assemble(ctx, f.config, "test", slog.New(slog.NewTextHandler(&f.log, nil)), m, false)
	if err != nil {
		cancel()
		f.Fatal(err)
	}
	f.App, f.stop = a, cancel
	f.admin = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}}
	a.Reload(Reloading{File: "isthmus.yaml", Now: f.reload})
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
}

// read reads a page of the admin API that has to contain texts, or to lack those that
// begin with "!".
func (f *frail) read(path string, texts ...string) {
	f.Helper()
	f.readStatus(http.StatusOK, path, texts...)
}

// readStatus is read with the status that the page has to have.
func (f *frail) readStatus(status int, path string, texts ...string) {
	f.Helper()
	response, err := f.admin.Get("http://127.0.0.1" + path)
	if err != nil {
		f.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	for _, text := range texts {
		without, absent := strings.CutPrefix(text, "!")
		if strings.Contains(string(body), without) == absent {
			f.Errorf("%s lacks %q:\n%s", path, text, body)
		}
	}
	if response.StatusCode != status {
		f.Errorf("%s: %s\n%s", path, response.Status, body)
	}
}

// lists has the source list hosts, and waits until all is at rest.
func (f *frail) lists(hosts ...string) {
	f.first <- hosts
	synctest.Wait()
}

func (o *takes) mustHave(t *testing.T, hosts ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if got := slices.Sorted(maps.Keys(o.hosts)); !slices.Equal(got, hosts) {
		t.Errorf("it has %q, want %q", got, hosts)
	}
}

// The merge panics again and again. The process goes on serving what it has, says why there
// is nothing newer, and catches up by itself.
func TestAPanicInTheMergeKeepsWhatIsServed(t *testing.T) {
	inFrail(t, func(f *frail) {
		f.lists("a")
		f.good.mustHave(f.T, "a")
		f.store.ghosts.Store(1000)
		f.lists("a", "b")
		time.Sleep(2 * stuckAfter)
		f.good.mustHave(f.T, "a")
		f.read("/readyz?verbose", "catalog: ", " panics in merge, the last ", ": a ghost; nothing newer is served, and it is tried again, for 2m0s")
		f.read("/livez", "ok")
		if n := strings.Count(f.log.String(), "a ghost"); n != 1 {
			f.Errorf("it is logged %d times", n)
		}
		if tries := f.store.watches.Load(); tries < 4 || tries > 20 {
			f.Errorf("the store is read %d times in two minutes", tries)
		}
		f.store.ghosts.Store(0)
		time.Sleep(mergeAgain.Max)
		f.good.mustHave(f.T, "a", "b")
		f.read("/readyz?verbose", "panics in merge", "!nothing newer")
		f.read("/metrics", `isthmus_panics_total{output="",where="merge"}`)
		f.lists("b")
		f.good.mustHave(f.T, "b")
	})
}

// A single panic in the merge costs no more than reading the store again, at once.
func TestOnePanicInTheMergeLosesNothing(t *testing.T) {
	inFrail(t, func(f *frail) {
		f.lists("a")
		f.store.ghosts.Store(1)
		f.lists("a", "b")
		f.good.mustHave(f.T, "a", "b")
		f.read("/readyz?verbose", "catalog: 1 panics in merge", "!nothing newer")
		if n := f.store.watches.Load(); n != 2 {
			f.Errorf("the store is read %d times", n)
		}
	})
}

// An output panics while it takes snapshots. Others go on, and it is given later all that it
// missed.
func TestAPanicInAnOutputCostsThatOutput(t *testing.T) {
	for name, after := range map[string]bool{"at the begin": false, "at the end": true} {
		t.Run(name, func(t *testing.T) {
			inFrail(t, func(f *frail) {
				f.lists("a", "b")
				f.bad.fail(true, after)
				f.lists("b", "c")
				f.lists("b", "c", "d")
				f.good.mustHave(f.T, "b", "c", "d")
				f.read("/readyz?verbose", "output xds: 4 panics in publish, the last ", ": a bug; nothing newer is served, and it is tried again, for ", "!output mcp")
				if n := strings.Count(f.log.String(), "a bug"); n != 1 {
					f.Errorf("it is logged %d times", n)
				}
				f.bad.fail(false, false)
				f.lists("b", "c", "d", "e")
				f.bad.mustHave(f.T, "b", "c", "d", "e")
				f.read("/readyz?verbose", "output xds: 4 panics", "!nothing newer")
				f.read("/metrics", `isthmus_panics_total{output="xds",where="publish"} 4`)
			})
		})
	}
}

// Load balancers see that a process is stopping for as long as an output drains.
func TestReadinessEndsBeforeTheOutputs(t *testing.T) {
	inFrail(t, func(f *frail) {
		f.lists("a")
		f.read("/readyz")
		f.good.drains = output.Drain
		f.stop()
		time.Sleep(output.Drain - time.Millisecond)
		f.readStatus(http.StatusServiceUnavailable, "/readyz", "stopping")
	})
}

// A reload that adds, moves or removes sources does not read the store again, and changes go on
// meanwhile.
func TestAReloadReadsNoStore(t *testing.T) {
	inFrail(t, func(f *frail) {
		f.lists("a")
		second := config.Source{Name: "second", Kind: "file", Settings: tells{hosts: make(chan []string)}, Hold: hold.Default()}
		for i, sources := range [][]config.Source{{second, f.config.Sources[0]}, {f.config.Sources[0], second}, {f.config.Sources[0]}} {
			next := *f.config
			next.Sources = sources
			f.config = &next
			f.reload <- os.Interrupt
			f.lists("a", string(rune('b'+i)))
			if i == 0 {
				second.Settings.(tells).hosts <- []string{"z"}
				synctest.Wait()
			}
			f.good.mustHave(f.T, [][]string{{"a", "b", "z"}, {"a", "c", "z"}, {"a", "d"}}[i]...)
		}
		if n := f.store.watches.Load(); n != 1 {
			f.Errorf("the store is read %d times", n)
		}
	})
}

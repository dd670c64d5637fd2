package laws_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// lawStore has the methods of a store that histories use.
type lawStore interface {
	supervise.Store
	At() model.At
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// process is one run of the application, which is the real one, on a machine
// that is all in memory but for the folder of the store.
type process struct {
	*app.App
	store  lawStore // that of the application
	since  time.Time
	cancel context.CancelFunc
	ended  chan error
	hangup chan os.Signal
	conn   *grpc.ClientConn
	diary  diary
	served bool // something is
	loose  bool // it was reloaded since that was looked at
}

const (
	// lawRoot is the root namespace of all histories.
	lawRoot = "istio-system"
	// lawBackoff bounds the wait before a registry that failed is read again.
	lawBackoff = 5 * time.Second
)

func (p *play) configuration() *config.Config {
	// What is wrong with it is that it has no sources yet.
	c, _ := config.Parse([]byte("outputs: {xds: {listen: '127.0.0.1:0'}}\nadmin: {listen: '127.0.0.1:0'}\n"), os.LookupEnv)
	c.Instance, c.RootNamespace, c.Store.DataDir = lawInstance, lawRoot, p.dir
	served := c.Outputs.Of("xds").(*xds.Config)
	served.Debounce, served.Turn = p.script.Debounce, p.script.Turn
	for _, e := range p.wanted {
		required := !e.Optional
		c.Sources = append(c.Sources, config.Source{
			Name: e.Name, Required: &required, Hold: e.Hold, Kind: "file", Settings: scripted{p, e.Registry}, MaxBackoff: lawBackoff,
		})
	}
	return c
}

// scripted are the settings of a source that reads a registry of the script.
type scripted struct {
	play     *play
	registry int
}

func (scripted) Validate() error    { return nil }
func (scripted) Resolve(string)     {}
func (scripted) Check() error       { return nil }
func (scripted) Warnings() []string { return nil }

func (s scripted) Open(env source.Env) source.Source {
	return reader{s.play.registries[s.registry], func(store func() error, said said) error { return s.play.took(env.Name, store, said) }}
}

// machine listens in memory: for the output xds first, and then for the admin API.
func (p *play) machine(listeners ...net.Listener) app.Machine {
	return app.Machine{
		OptionalWait: app.OptionalWait,
		Store:        store.Config{History: p.script.History, HistoryBytes: p.script.Bytes},
		Memory:       func(c store.Config) app.Records { return store.NewMemory(c) },
		Listen: func(context.Context, string, string) (net.Listener, error) {
			next := listeners[0]
			listeners = listeners[1:]
			return next, nil
		},
		Load:  func(string) (*config.Config, error) { return p.configuration(), nil },
		Watch: func(ctx context.Context, _ string, _ *slog.Logger, _ func()) { <-ctx.Done() },
	}
}

// start starts the application anew.
func (p *play) start() {
	ctx, cancel := context.WithCancel(context.Background())
	listener := bufconn.Listen(64 << 10)
	a, err := app.NewOn(ctx, p.configuration(), "law", slog.New(slog.DiscardHandler), p.machine(listener, bufconn.Listen(1)))
	if err != nil {
		cancel()
		p.Fatalf("start: %v", err)
	}
	up := &process{App: a, store: a.Inside().Store.(lawStore), since: time.Now(), cancel: cancel, ended: make(chan error, 1), hangup: make(chan os.Signal, 1)}
	p.stored = a.Inside().Store.(lawStore)
	p.remember(a)
	p.vault.join(p, engineOf(a))
	p.handOver(a)
	a.Reload(app.Reloading{File: "isthmus.yaml", Now: up.hangup})
	up.diary.begin(up.store)
	go func() { up.ended <- a.Run(ctx) }()
	up.conn, err = grpc.NewClient("passthrough:///isthmus", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		p.Fatalf("dial: %v", err)
	}
	p.process = up
	p.lookAtRestored(up)
}

// remember makes what the application has restored what the mirrors know.
func (p *play) remember(a *app.App) {
	stored := map[string][]model.Record{}
	for r := range a.Inside().Store.List(model.Filter{}) {
		stored[r.Source] = append(stored[r.Source], r)
	}
	p.mirrors, p.present = map[string]*mirror{}, nil
	for _, e := range p.wanted {
		p.mirrors[e.Name] = mirrorOf(e.Hold, stored[e.Name])
		p.present = append(p.present, &seat{entry: e})
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		switch {
		case p.seat(name) != nil:
		case slices.ContainsFunc(p.wanted, func(e entry) bool { return !p.primed(e.Name) }),
			slices.ContainsFunc(leavingOf(stored[name]).Successors.Slice(), p.wants):
			p.leftover(name, stored[name])
		default:
			p.Fatalf("source %s is not configured, and its records are there after a start", name)
		}
	}
	p.marks = p.staleMarks()
	p.recent = []telling{p.telling()}
}

// stays reports whether what is stored of a source outlives a start.
func (p *play) stays(name string) bool {
	return p.seat(name) != nil || slices.ContainsFunc(p.wanted, func(e entry) bool { return e.Name == name })
}

// stop ends the application: as it should be, or as if it was killed, so that
// nobody is shown it and the disk has what was saved by then.
func (p *play) stop(kill bool) {
	old := p.process
	p.keep()
	p.killed = time.Time{}
	if kill {
		for _, c := range p.clients {
			c.Disconnect()
		}
		synctest.Wait() // nothing is half written
		p.copyFolder()
	}
	p.process = nil
	old.cancel()
	err := <-old.ended
	_ = old.conn.Close()
	old.diary.end()
	if p.last = &old.diary; err != nil {
		p.Fatalf("the application ended: %v", err)
	}
}

// copyFolder goes on with a copy of the folder, as it is now.
func (p *play) copyFolder() {
	p.killed = time.Now()
	if p.dir == "" {
		return
	}
	p.copies++
	next := filepath.Join(p.root, fmt.Sprint("copy-", p.copies))
	files, err := os.ReadDir(p.dir)
	if err == nil {
		err = os.Mkdir(next, 0o700)
	}
	for _, f := range files {
		content, failed := os.ReadFile(filepath.Join(p.dir, f.Name()))
		if failed == nil {
			failed = os.WriteFile(filepath.Join(next, f.Name()), content, 0o600)
		}
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		p.Fatalf("copy: %v", err)
	}
	p.dir = next
}

// link is what clients open streams over, to whichever process there is.
type link struct{ p *play }

// NewStream implements [grpc.ClientConnInterface].
func (l link) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.p.process.conn.NewStream(ctx, d, method, o...)
}

// Invoke implements [grpc.ClientConnInterface].
func (l link) Invoke(ctx context.Context, method string, args, reply any, o ...grpc.CallOption) error {
	return l.p.process.conn.Invoke(ctx, method, args, reply, o...)
}

// engineOf is that of the output xds, the only one.
func engineOf(a *app.App) *push.Engine { return a.Inside().Outputs[0].Report().Clients.Engine }

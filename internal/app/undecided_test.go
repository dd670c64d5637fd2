package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
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
)

// cluster is an API server at one of its addresses.
type cluster struct {
	address string

	mu    sync.Mutex // guards the rest
	uid   string
	err   error
	asked int
}

// says changes which cluster it says it is of; empty if it does not say so.
func (c *cluster) says(uid string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid, c.err = uid, err
}

// questions counts how often it was asked since the last call.
func (c *cluster) questions() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.asked = c.asked, 0
	return n
}

// Server implements [source.APIServer] and [output.APIServer].
func (c *cluster) Server() (string, error) { return c.address, nil }

// Identity implements [source.APIServer] and [output.APIServer].
func (c *cluster) Identity(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.uid, c.err
}

// lists are the settings of a source that lists one service.
type lists struct {
	source.Settings // has no more than is defined here
	host            string
	err             error // why it cannot be read; nil if it can
}

// Open implements [source.Settings].
func (l lists) Open(source.Env) source.Source { return l }

// Warnings implements [source.Settings].
func (lists) Warnings() []string { return nil }

// Run implements [source.Source].
func (l lists) Run(ctx context.Context, sink source.Sink) error {
	service := model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: l.host}}
	endpoint := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: "shop", Name: l.host + "/10.0.0.1"}}
	o := source.Object{Record: model.Record{Ref: service, Spec: model.Service{
		Hosts: model.ListOf(l.host), Resolution: model.ResolutionStatic, Location: model.MeshInternal,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}, Owned: []model.Record{{Ref: endpoint, Owner: service, Spec: model.Endpoint{Address: "10.0.0.1"}}}}
	for l.err == nil {
		if err := sink.Replace(ctx, source.Listing{Objects: []source.Object{o}}); err != nil {
			return err
		}
		select {
		case <-sink.Relist():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.err
}

// reads are the settings of one that reads an API server.
type reads struct {
	lists
	*cluster
}

// writes are the settings of an output that writes to an API server, and that output.
type writes struct {
	output.Settings // has no more than is defined here
	*cluster

	mu    sync.Mutex // guards the rest
	hosts []string   // of the newest snapshot
}

// Open implements [output.Settings].
func (w *writes) Open(context.Context, output.Env) (output.Output, error) { return w, nil }

// Warnings implements [output.Settings].
func (*writes) Warnings() []string { return nil }

// Only implements [output.APIServer].
func (*writes) Only() []string { return nil }

// Publish implements [output.Output].
func (w *writes) Publish(s *catalog.Snapshot, _ catalog.Change, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = nil
	for service := range s.Services() {
		w.hosts = append(w.hosts, service.Key.Host)
	}
}

// Run implements [output.Output].
func (*writes) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Report implements [output.Output].
func (*writes) Report() output.Report { return output.Report{} }

// written are the services that are written now.
func (w *writes) written() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts
}

// bridged is an Isthmus in a bubble. It writes to a cluster what a folder has, and what it
// reads as east, at another address.
type bridged struct {
	*testing.T
	near, east *cluster
	output     *writes
	config     *config.Config
	reload     chan os.Signal
}

const (
	inFolder = "files.example"
	inEast   = "east.example"
)

// inBubble runs test with a bridge which is at the start of its configuration.
func inBubble(t *testing.T, test func(b *bridged)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near := &cluster{address: "https://near", uid: "u-1"}
		b := &bridged{T: t, near: near, east: &cluster{address: "https://east"}, output: &writes{cluster: near}, reload: make(chan os.Signal)}
		b.config = &config.Config{
			Instance: "one", RootNamespace: lawRoot, Admin: config.Admin{Listen: "127.0.0.1:0"},
			Sources: []config.Source{
				{Name: "files", Kind: "file", Settings: &lists{host: inFolder}, Hold: hold.Default()},
				{Name: "east", Kind: "kubernetes", Settings: &reads{lists{host: inEast}, b.east}, Hold: hold.Default()},
			},
			Outputs: config.Outputs{{Kind: "istio", Settings: b.output}},
		}
		test(b)
	})
}

// serve runs the bridge until the test ends.
func (b *bridged) serve() {
	b.Helper()
	m := thisMachine()
	m.listen = func(context.Context, string, string) (net.Listener, error) { return bufconn.Listen(1), nil }
	m.load = func(string) (*config.Config, error) { return b.config, nil }
	m.watch = func(ctx context.Context, _ string, _ *slog.Logger, _ func()) { <-ctx.Done() }
	ctx, cancel := context.WithCancel(context.Background())
	a, err := assemble(ctx, b.config, "test", slog.New(slog.DiscardHandler), m, false)
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	a.Reload(Reloading{File: "isthmus.yaml", Now: b.reload})
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

// becomes replaces the source east by one with other settings.
func (b *bridged) becomes(kind string, settings source.Settings) {
	next := *b.config
	next.Sources = slices.Clone(next.Sources)
	next.Sources[1].Kind, next.Sources[1].Settings = kind, settings
	b.config = &next
	b.reload <- os.Interrupt
}

// writes fails unless just these services are written, now and for so long.
func (b *bridged) writes(period time.Duration, hosts ...string) {
	b.Helper()
	for began := time.Now(); ; time.Sleep(time.Second) {
		if got := b.output.written(); !slices.Equal(got, hosts) {
			b.Fatalf("after %s, written are %q, want %q", time.Since(began), got, hosts)
		}
		if time.Since(began) >= period {
			return
		}
	}
}

// latest is when at the latest something is taken over which an API server says.
const latest = 10*askLimit + time.Second

// An API server that starts denies for a time what it allows later. It is not taken for
// one of another cluster by that.
func TestWhatIsDeniedAtTheStartIsNotFinal(t *testing.T) {
	for name, uid := range map[string]string{"of the same cluster": "u-1", "of another": "u-2"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.serve()
				b.writes(unsaidLimit / 2) // it waits for east, as for one that is not listed yet
				b.east.says(uid, nil)
				time.Sleep(latest)
				if uid == "u-1" {
					b.writes(time.Hour, inFolder)
				} else {
					b.writes(time.Hour, inEast, inFolder)
				}
				b.east.questions()
				if time.Sleep(time.Hour); b.east.questions() > 0 {
					b.Error("it is asked although it has said it")
				}
			})
		})
	}
}

// Who may never know which cluster it is has its services written in the end. It is asked
// on, and not too often.
func TestWhatIsDeniedForLongIsWritten(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.serve()
		b.writes(unsaidLimit - time.Second)
		time.Sleep(latest)
		b.writes(0, inEast, inFolder)
		b.east.questions()
		b.writes(time.Hour, inEast, inFolder)
		if n := b.east.questions(); n < int(time.Hour/(10*askLimit)) || n > int(time.Hour/(5*askLimit)) {
			b.Errorf("it is asked %d times in an hour", n)
		}
	})
}

// What was written because it was denied for long is taken away once it is known that it
// is of the cluster that is written to, whichever of the two did not say so.
func TestWhatWasWrittenAfterDenialsIsTakenBack(t *testing.T) {
	for _, name := range []string{"the one that is read", "the one that is written", "both"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				if name != "the one that is read" {
					b.near.says("", nil)
				}
				if name == "the one that is written" {
					b.east.says("u-1", nil)
				}
				b.serve()
				time.Sleep(unsaidLimit + latest)
				b.writes(time.Hour, inEast, inFolder)
				b.near.says("u-1", nil)
				b.east.says("u-1", nil)
				time.Sleep(latest)
				b.writes(time.Hour, inFolder)
			})
		})
	}
}

// A minute of denials is one without anything else between them. An API server that is
// down, or starts anew, has denied nothing.
func TestAMinuteOfDenialsIsWithoutAPause(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.serve()
		for range 10 {
			b.writes(unsaidLimit / 2)
			b.east.says("", errors.New("it is down"))
			time.Sleep(latest)
			b.east.says("", nil)
		}
		b.east.says("u-2", nil)
		time.Sleep(latest)
		b.writes(0, inEast, inFolder)
	})
}

// A rehearsal writes nothing, so it does not wait for what may be said later.
func TestARehearsalDoesNotWaitForADenial(t *testing.T) {
	inBubble(t, func(b *bridged) {
		began := time.Now()
		if _, err := Rehearse(b.Context(), b.config, slog.New(slog.DiscardHandler)); err != nil {
			b.Fatal(err)
		}
		if took := time.Since(began); took > 0 {
			b.Errorf("it takes %s", took)
		}
		b.writes(0, inEast, inFolder)
	})
}

// A source of which it is not known what it reads is replaced, under its name, by one that
// reads something else: nothing waits for it any more, and it is written, but nothing of
// what was read before under the name, which is held for a time.
func TestSourceOfOtherSettingsUnderTheNameIsWritten(t *testing.T) {
	replacement := lists{host: "other.example"}
	for name, settings := range map[string]source.Settings{
		"of another kind":       &replacement,
		"of another API server": &reads{replacement, &cluster{address: "https://west", uid: "u-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.east.says("", errors.New("it is down"))
				b.serve()
				b.writes(time.Hour)
				b.becomes("other", settings)
				b.writes(b.config.Sources[1].Hold.For, inFolder)
				time.Sleep(latest)
				b.writes(time.Hour, inFolder, "other.example")
			})
		})
		t.Run(name+", and nothing was read before", func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.east.says("", errors.New("it is down"))
				b.config.Sources[1].Settings = &reads{lists{err: errors.New("it is down")}, b.east}
				b.serve()
				b.writes(time.Hour)
				b.becomes("other", settings)
				time.Sleep(askLimit)
				b.writes(time.Hour, inFolder, "other.example")
			})
		})
	}
}

// What one API server denied does not count for another one that is read under the name.
func TestADenialIsOfOneAPIServer(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.serve()
		b.writes(unsaidLimit - time.Second)
		b.becomes("kubernetes", &reads{lists{host: inEast}, &cluster{address: "https://west"}})
		b.writes(unsaidLimit-time.Second, inFolder)
		time.Sleep(latest)
		b.writes(0, inEast, inFolder)
	})
}

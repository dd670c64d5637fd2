package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
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

// cluster is an API server at one of its addresses, with a Lease as the marker.
type cluster struct {
	address string

	mu     sync.Mutex // guards the rest
	uid    string     // of the Lease; empty without one
	err    error      // answers every request
	asked  int        // number of requests
	looked func()     // called with each search for a marker; may be nil
	made   bool       // the Lease was created here
}

// has replaces the Lease, or the error that answers every request.
func (c *cluster) has(uid string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid, c.err = uid, err
}

// requests returns the number of requests since the last call.
func (c *cluster) requests() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.asked = c.asked, 0
	return n
}

// Server implements [source.APIServer] and [output.APIServer].
func (c *cluster) Server() (string, error) { return c.address, nil }

// Sees implements [source.APIServer].
func (c *cluster) Sees(_ context.Context, m source.Marker) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.looked != nil {
		c.looked()
	}
	return c.err == nil && c.uid == m.UID, c.err
}

// Mark implements [output.APIServer].
func (c *cluster) Mark(_ context.Context, create bool) (source.Marker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if create && c.uid == "" && c.err == nil {
		c.uid, c.made = "made", true
	}
	return source.Marker{Namespace: "mesh", Name: "isthmus", UID: c.uid}, c.err
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
	o := model.Object{Record: model.Record{Ref: service, Spec: model.Service{
		Hosts: model.ListOf(l.host), Resolution: model.ResolutionStatic, Location: model.MeshInternal,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}, Owned: []model.Record{{Ref: endpoint, Owner: service, Spec: model.Endpoint{Address: "10.0.0.1"}}}}
	for l.err == nil {
		if err := sink.Replace(ctx, model.Listing{Objects: []model.Object{o}}); err != nil {
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
	log        bytes.Buffer // to be read after synctest.Wait
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
			Instance: "one", RootNamespace: "istio-system", Admin: config.Admin{Listen: "127.0.0.1:0"},
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
	m.Listen = func(context.Context, string, string) (net.Listener, error) { return bufconn.Listen(1), nil }
	m.Load = func(string) (*config.Config, error) { return b.config, nil }
	m.Watch = func(ctx context.Context, _ string, _ *slog.Logger, _ func()) { <-ctx.Done() }
	ctx, cancel := context.WithCancel(context.Background())
	a, err := assemble(ctx, b.config, "test", slog.New(slog.NewTextHandler(&b.log, nil)), m, false)
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

// errDenied is the answer of an API server to a user without a right.
var errDenied = errors.New("allow the verb get on leases")

// While the relation of a source is unknown, nothing of the source is written. The
// relation is decided as soon as both API servers answer, and once for all.
func TestUnknownSourceIsDecidedLater(t *testing.T) {
	for name, test := range map[string]struct {
		uid         string
		near, east  error
		wantWritten []string
	}{
		"same cluster, denied by the source's":     {"u-1", nil, errDenied, []string{inFolder}},
		"another cluster, denied by the source's":  {"u-2", nil, errDenied, []string{inEast, inFolder}},
		"no such Lease, denied by the source's":    {"", nil, errDenied, []string{inEast, inFolder}},
		"same cluster, denied by the written one":  {"u-1", errDenied, nil, []string{inFolder}},
		"another cluster, denied by the written":   {"u-2", errDenied, nil, []string{inEast, inFolder}},
		"another cluster, denied by both of them":  {"u-2", errDenied, errDenied, []string{inEast, inFolder}},
		"the same cluster, denied by both of them": {"u-1", errDenied, errDenied, []string{inFolder}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.near.has("u-1", test.near)
				b.east.has(test.uid, test.east)
				b.serve()
				b.writes(time.Hour) // the first listing waits for east
				b.east.requests()
				b.near.requests()
				time.Sleep(time.Hour)
				if n := b.near.requests(); n < int(time.Hour/(10*askLimit)) || n > 2*int(time.Hour/(5*askLimit)) {
					b.Errorf("there are %d requests in an hour", n)
				}
				b.near.has("u-1", nil)
				b.east.has(test.uid, nil)
				time.Sleep(latest)
				b.near.requests()
				b.east.requests()
				b.east.has("u-1", nil)
				b.near.has("u-1", nil)
				b.writes(time.Hour, test.wantWritten...)
				if n := b.east.requests() + b.near.requests(); n > 0 {
					b.Errorf("there are %d requests after the decision", n)
				}
			})
		})
	}
}

// Why a relation is unknown is logged once, and again when the reason is another one.
func TestReasonsOfUnknownSourcesAreLogged(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.east.has("", errors.New("it is down"))
		b.serve()
		for _, want := range []string{"it is down", errDenied.Error()} {
			b.writes(time.Hour)
			if n := strings.Count(b.log.String(), want); n != 1 {
				b.Errorf("%q is logged %d times", want, n)
			}
			b.east.has("", errDenied)
		}
	})
}

// The marker is created where it is missing, and compared by its UID.
func TestMarkerIsCreatedAndCompared(t *testing.T) {
	for uid, written := range map[string][]string{"made": {inFolder}, "u-2": {inEast, inFolder}, "": {inEast, inFolder}} {
		t.Run("the source sees "+uid, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.near.has("", nil)
				b.east.has(uid, nil)
				b.serve()
				b.writes(time.Hour, written...)
				if !b.near.made || b.east.made {
					b.Errorf("created are %t and %t", b.near.made, b.east.made)
				}
			})
		})
	}
}

// A source that looks for a marker which was replaced meanwhile sees another one, or none.
// That does not prove another cluster.
func TestReplacedMarkerProvesNothing(t *testing.T) {
	for _, uid := range []string{"", "u-3"} {
		t.Run("by "+uid, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.east.has("u-1", nil)
				b.east.looked = func() { // both are one cluster
					b.east.looked = nil
					b.east.uid = uid
					b.near.has(uid, nil)
				}
				b.serve()
				b.writes(0)
				b.east.has(cmp.Or(uid, "made"), nil)
				time.Sleep(latest)
				b.writes(time.Hour, inFolder)
			})
		})
	}
}

// A confirmation that fails leaves the source unknown as well.
func TestMarkerThatCannotBeConfirmedProvesNothing(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.east.has("u-2", nil)
		b.east.looked = func() { b.near.has("u-1", errDenied) }
		b.serve()
		b.writes(time.Hour)
	})
}

// A rehearsal creates no marker. Without one, it assumes that other addresses are of other
// clusters, and warns. It does not wait for that.
func TestRehearsalOnlyLooksForTheMarker(t *testing.T) {
	for uid, warns := range map[string]bool{"": true, "u-1": false} {
		t.Run("marker "+uid, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.near.has(uid, nil)
				b.east.has("u-2", nil)
				began := time.Now()
				r, err := Rehearse(b.Context(), b.config, slog.New(slog.DiscardHandler))
				if err != nil {
					b.Fatal(err)
				}
				if took := time.Since(began); took > 0 {
					b.Errorf("it takes %s", took)
				}
				if len(r.Warnings) > 0 != warns || warns && !strings.HasPrefix(r.Warnings[0], "source east: the Lease mesh/isthmus ") {
					b.Errorf("the warnings are %q", r.Warnings)
				}
				if b.near.made {
					b.Error("a marker is created")
				}
				b.writes(0, inEast, inFolder)
			})
		})
	}
}

// A rehearsal leaves out a source that sees the marker.
func TestRehearsalComparesByTheMarker(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.east.has("u-1", nil)
		if _, err := Rehearse(b.Context(), b.config, slog.New(slog.DiscardHandler)); err != nil {
			b.Fatal(err)
		}
		b.writes(0, inFolder)
	})
}

// A rehearsal that waits for an unknown source in vain names the error.
func TestRehearsalNamesTheUnknownSource(t *testing.T) {
	inBubble(t, func(b *bridged) {
		b.east.has("", errDenied)
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if _, err := Rehearse(ctx, b.config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "source east: "+errDenied.Error()) {
			b.Errorf("the error is %v", err)
		}
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
				b.east.has("", errors.New("it is down"))
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
				b.east.has("", errors.New("it is down"))
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

// A source that reads another API server by other settings is compared anew.
func TestOtherSettingsAreComparedAnew(t *testing.T) {
	for uid, written := range map[string][]string{"u-1": {inFolder}, "u-2": {inEast, inFolder}} {
		t.Run("west has "+uid, func(t *testing.T) {
			inBubble(t, func(b *bridged) {
				b.east.has("", errDenied)
				b.serve()
				b.writes(time.Hour)
				west := &cluster{address: "https://west", uid: uid}
				b.becomes("kubernetes", &reads{lists{host: inEast}, west})
				time.Sleep(latest)
				b.writes(time.Hour, written...)
				if west.requests() == 0 {
					b.Error("west was not asked")
				}
			})
		})
	}
}

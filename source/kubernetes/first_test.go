package kubernetes_test

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// A kind of Istio that fails for a moment is waited for where nothing is stored: what it
// has would be missing. Where something is stored it stays, and holds up nothing.
func TestFirstListingOfAllHasEveryKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(false)
		at := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8080")}
		r.Set(sourcetest.Services{"a.example": {Endpoints: at}, "c.example": {Endpoints: at}})
		stored := store.NewMemory(store.Config{})
		fail := only("serviceentries", rejects(http.StatusInternalServerError, "InternalError"))

		r.api.fail(fail, ends)
		s, stop := supervised(t, r, stored)
		if state := s.Status().State; state == source.StateLive {
			t.Errorf("it is %s, and the ServiceEntries were not listed", state)
		}
		r.api.fail(nil, ends)
		pass(10 * time.Second)
		mustHave(t, s, stored)
		stop()

		r.api.fail(fail, ends)
		s, stop = supervised(t, r, stored)
		mustHave(t, s, stored)
		stop()
	})
}

// supervise runs a source for ten seconds, and then until it is stopped.
func supervised(t *testing.T, r *registry, in *store.Memory) (s *supervise.Supervisor, stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	src := r.Open(source.Env{Instance: "test", Name: "k8s", Log: log, Stored: func() iter.Seq[model.Record] {
		return in.List(model.Filter{Source: "k8s"})
	}})
	s = supervise.New("k8s", src, in, supervise.Config{Kind: "kubernetes", Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	pass(10 * time.Second)
	return s, func() { cancel(); <-ended }
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func mustHave(t *testing.T, s *supervise.Supervisor, in *store.Memory) {
	t.Helper()
	services := 0
	for range in.List(model.Filter{Source: "k8s", Kind: model.KindService}) {
		services++
	}
	if state := s.Status().State; state != source.StateLive || services != 2 {
		t.Errorf("it is %s with %d services", state, services)
	}
}

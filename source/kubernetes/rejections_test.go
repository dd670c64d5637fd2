package kubernetes_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// A source that lists only once, as in a rehearsal, looks no object up to write an Event
// about it.
func TestRehearsalWritesNoEvents(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"a rehearsal": true, "a run": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry(false)
				r.Set(sourcetest.Services{"bad.entry": {Bad: true}})
				var looked atomic.Bool
				r.api.fail(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet || r.URL.Query().Get("fieldSelector") != "" {
						looked.Store(true)
						return rejection(http.StatusForbidden, "Forbidden"), nil
					}
					return nil, nil
				}, ends)
				settings := kubernetes.Kind().New().(*kubernetes.Config) //nolint:forcetypeassert // the kind's own
				src := kubernetes.New(*settings, source.Env{Name: "k8s", Once: once, Log: slog.New(slog.DiscardHandler)})
				src.Reach(&rest.Config{Host: "http://api.test", Transport: r.api})
				s := supervise.New("k8s", src, store.NewMemory(store.Config{}), supervise.Config{Kind: "kubernetes"})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); _ = s.Run(ctx) }()
				pass(10 * time.Second)
				if len(s.Status().Rejected) == 0 || looked.Load() == once {
					t.Errorf("rejected are %v, and an Event was tried: %t", s.Status().Rejected, looked.Load())
				}
				cancel()
				<-ended
			})
		})
	}
}

package kubernetes_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// podsOf is a watch that begins with many large pods, and never says that it has begun.
type podsOf struct {
	of    context.Context //nolint:containedctx // of the only request
	pods  int
	ready strings.Reader
}

const podSize = 8 << 10

// Read implements [io.Reader].
func (p *podsOf) Read(b []byte) (int, error) {
	if p.ready.Len() == 0 && p.pods == 0 {
		<-p.of.Done()
		return 0, p.of.Err()
	}
	if p.ready.Len() == 0 {
		p.pods--
		p.ready.Reset(string(encode(object{"type": "ADDED", "object": object{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": object{
				"namespace": "shop", "name": fmt.Sprint("pod-", p.pods), "uid": fmt.Sprint("uid-", p.pods), "resourceVersion": "1",
				"labels": object{"app": "web"}, "annotations": object{"padding": strings.Repeat("x", podSize)},
			},
			"spec": object{"serviceAccountName": "web"},
		}})))
	}
	return p.ready.Read(b)
}

// Close implements [io.Closer].
func (p *podsOf) Close() error { return nil }

// While pods come in, no more of each is in memory than what is kept of it.
//
//nolint:paralleltest // it measures the heap
func TestPodsThatComeInTakeLittleMemory(t *testing.T) {
	const pods = 2000
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(false)
		rest := &podsOf{pods: pods}
		r.api.fail(only("pods", func(r *http.Request) (*http.Response, error) {
			rest.of = r.Context()
			return &http.Response{StatusCode: http.StatusOK, Body: rest, ContentLength: -1, Header: jsonHeader()}, nil
		}), ends)
		log := slog.New(slog.DiscardHandler)
		s := supervise.New("k8s", r.Open(source.Env{Name: "k8s", Log: log}), store.NewMemory(store.Config{}), supervise.Config{Log: log})
		before := heap()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Run(ctx) }()
		synctest.Wait()
		if rest.pods > 0 {
			t.Fatalf("%d pods were not read", rest.pods)
		}
		if each := (heap() - before) / pods; each > podSize/4 {
			t.Errorf("each pod of %d bytes takes %d", podSize, each)
		}
		cancel()
		<-ended
	})
}

// heap is what is in use. What other tests left in pools or to finalizers goes only with
// a later collection.
func heap() int {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

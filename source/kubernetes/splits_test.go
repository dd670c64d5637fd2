package kubernetes_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// split is a TrafficSplit of reviews between backends with equal weights.
func split(backends ...string) object {
	var list []any
	for _, name := range backends {
		list = append(list, object{"service": name, "weight": 50})
	}
	return object{"spec": object{"service": "reviews", "backends": list}}
}

// matching is a TrafficSplit for some requests alone.
func matching() object {
	o := split("reviews-v1", "reviews-v2")
	o["spec"].(object)["matches"] = []any{object{"kind": "HTTPRouteGroup", "name": "firefox"}} //nolint:forcetypeassert // as written above
	return o
}

// undefined is an API server without the definition of TrafficSplits. It forbids requests
// without rights before it looks at definitions.
func undefined(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/split.smi-spec.io"):
		return rejection(http.StatusNotFound, "NotFound"), nil
	case strings.Contains(r.URL.Path, "split.smi-spec.io"):
		return rejection(http.StatusForbidden, "Forbidden"), nil
	}
	return nil, nil
}

// servedAs has an API server have TrafficSplits in one version.
func (a *apiServer) servedAs(version string) fault {
	return func(r *http.Request) (*http.Response, error) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/trafficsplits"):
			return nil, nil
		case !strings.Contains(r.URL.Path, "/"+version+"/"):
			return rejection(http.StatusNotFound, "NotFound"), nil
		case r.URL.Query().Get("watch") == "":
			return a.list(r), nil
		default:
			return a.watch(r), nil
		}
	}
}

// splitsOf returns the stored splits, by name.
func splitsOf(in *store.Memory) map[string]model.Split {
	all := map[string]model.Split{}
	for r := range in.List(model.Filter{Source: "k8s", Kind: model.KindSplit}) {
		all[r.Name], _ = r.Spec.(model.Split)
	}
	return all
}

// A cluster without the definition of TrafficSplits lacks nothing. Once it has the definition,
// its objects are read, with the hosts of the cluster. After the definition is removed with its
// objects, the cluster lacks nothing again.
func TestTrafficSplitsAreReadWhileTheyAreDefined(t *testing.T) {
	t.Parallel()
	for _, namespaces := range [][]string{nil, {"shop", "other"}} {
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false, namespaces...), store.NewMemory(store.Config{})
			r.api.fail(undefined, ends)
			s, stop := supervised(t, r, stored)
			mustLackNothing(t, s.Status())

			r.api.write("trafficsplits", map[string]object{"a": split("reviews-v1", "reviews"), "b": split("reviews-v2")})
			r.api.fail(nil, ends)
			pass(long)
			mustLackNothing(t, s.Status())
			got := splitsOf(stored)
			want := []model.Backend{{Service: model.ServiceName{Namespace: "shop", Host: "reviews-v1.shop.svc.example"}, Weight: 50}, {Weight: 50}}
			if len(got) != 2 || got["a"].Host != "reviews.shop.svc.example" || !slices.EqualFunc(got["a"].Backends, want, model.Backend.Equal) {
				t.Errorf("of two TrafficSplits there are %+v", got)
			}

			r.api.write("trafficsplits", map[string]object{"a": split("reviews-v1")})
			pass(time.Second)
			if got := splitsOf(stored); len(got) != 1 || len(got["a"].Backends) != 1 {
				t.Errorf("of one TrafficSplit there are %+v", got)
			}
			r.api.write("trafficsplits", nil)
			r.api.fail(undefined, ends)
			pass(long)
			mustLackNothing(t, s.Status())
			if got := splitsOf(stored); len(got) > 0 {
				t.Errorf("without the definition there are %+v", got)
			}
			stop()
		})
	}
}

// Each version that an API server may have is read.
func TestTrafficSplitsAreReadInAnyVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4"} {
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false), store.NewMemory(store.Config{})
			r.api.write("trafficsplits", map[string]object{"a": split("reviews-v1")})
			r.api.fail(r.api.servedAs(version), ends)
			s, stop := supervised(t, r, stored)
			mustLackNothing(t, s.Status())
			if got := splitsOf(stored); len(got) != 1 {
				t.Errorf("of a TrafficSplit in %s there are %+v", version, got)
			}
			stop()
		})
	}
}

// A definition that is gone leaves the splits: nothing shows that the objects are deleted.
// Neither does a missing right. It is so in the next process as well.
func TestTrafficSplitsOutliveTheirDefinition(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fault{
		"absent": undefined, "forbidden": only("trafficsplits", rejects(http.StatusForbidden, "Forbidden")),
	} {
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false), store.NewMemory(store.Config{})
			r.api.write("trafficsplits", map[string]object{"a": split("reviews-v1")})
			s, stop := supervised(t, r, stored)
			r.api.fail(fault, ends)
			for range 3 { // this process, the next one, and the one after it
				pass(long)
				status := s.Status()
				if got := splitsOf(stored); len(got) != 1 || len(status.Rejected) != 1 || !strings.Contains(status.Rejected[0].Reason, "set smi: false") {
					t.Errorf("%s: there are %+v, and the status has %v", name, got, status.Rejected)
				}
				stop()
				s, stop = supervised(t, r, stored)
			}
			r.api.fail(nil, ends)
			pass(long)
			mustLackNothing(t, s.Status())
			stop()
		})
	}
}

// A TrafficSplit with matches divides nothing from then on, and says so. An invalid one stays
// as it was.
func TestTrafficSplitWithMatchesEndsDividing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		write := func(o object) {
			r.api.write("trafficsplits", map[string]object{"a": o})
			pass(time.Second)
		}
		write(split("reviews-v1", "reviews-v2"))
		s, stop := supervised(t, r, stored)
		write(matching())
		status, got := s.Status(), splitsOf(stored)["a"]
		if got.NoEffect == "" || len(got.Backends) > 0 || len(status.Rejected) != 1 || !strings.HasPrefix(status.Rejected[0].Reason, got.NoEffect) {
			t.Errorf("with matches it is %+v, and the status has %v", got, status.Rejected)
		}
		write(split("reviews-v1", "reviews-v2"))
		mustLackNothing(t, s.Status())
		write(split("Reviews"))
		if got := splitsOf(stored)["a"]; len(got.Backends) != 2 || len(s.Status().Rejected) != 1 {
			t.Errorf("after an invalid one it is %+v, and the status has %v", got, s.Status().Rejected)
		}
		write(matching())
		if got := splitsOf(stored)["a"]; got.NoEffect == "" || len(got.Backends) > 0 {
			t.Errorf("with matches it is %+v", got)
		}
		stop()
	})
}

// A TrafficSplit with matches has an Event with the reason, which does not claim that an earlier
// version stays.
func TestTrafficSplitWithMatchesHasAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(false)
		r.api.write("trafficsplits", map[string]object{"a": matching()})
		var mu sync.Mutex
		var written []string
		r.api.fail(func(q *http.Request) (*http.Response, error) {
			switch {
			case q.Method == http.MethodPost:
				text, err := io.ReadAll(q.Body)
				mu.Lock()
				defer mu.Unlock()
				written = append(written, q.URL.Path+" "+string(text))
				response := body(http.StatusCreated, string(text))
				response.Header.Set("Content-Type", q.Header.Get("Content-Type"))
				return response, err
			case q.URL.Query().Get("fieldSelector") != "" && strings.Contains(q.URL.Path, "/v1alpha4/"):
				return answer(http.StatusOK, object{
					"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
					"items": []any{object{"metadata": object{"namespace": "shop", "name": "a", "uid": "of-a"}}},
				}), nil
			case q.URL.Query().Get("fieldSelector") != "":
				return rejection(http.StatusNotFound, "NotFound"), nil
			}
			return nil, nil
		}, ends)
		settings := kubernetes.Kind().New().(*kubernetes.Config) //nolint:forcetypeassert // the kind's own
		src := kubernetes.New(*settings, source.Env{Name: "k8s", Log: slog.New(slog.DiscardHandler)})
		src.Reach(&rest.Config{Host: "http://api.test", Transport: r.api})
		s := supervise.New("k8s", src, store.NewMemory(store.Config{}), supervise.Config{Kind: "kubernetes"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Run(ctx) }()
		pass(10 * time.Second)
		cancel()
		<-ended
		if len(written) != 1 || !strings.HasPrefix(written[0], "/api/v1/namespaces/shop/events ") {
			t.Fatalf("the Events are %q", written)
		}
		for text, want := range map[string]bool{
			"Rejected": true, "TrafficSplit": true, "source k8s: spec.matches: HTTPRouteGroups are not read": true,
			"all stay with reviews.shop.svc.cluster.local": true, "last good version": false,
		} {
			if strings.Contains(written[0], text) != want {
				t.Errorf("%q contains %q: %t", written[0], text, !want)
			}
		}
	})
}

func mustLackNothing(t *testing.T, status source.Status) {
	t.Helper()
	if status.State != source.StateLive || len(status.Rejected) > 0 {
		t.Errorf("the source is %s, and the status has %v", status.State, status.Rejected)
	}
}

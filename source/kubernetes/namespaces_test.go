package kubernetes_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// writeEntries has the API server have ServiceEntries of these names and no others, with
// an endpoint each. There is something else, too: if it is all that is left, the rest is held.
func writeEntries(a *apiServer, names ...string) {
	a.write("workloadentries", map[string]object{"a/w": {"spec": object{"address": "10.0.0.9"}}})
	entries := map[string]object{}
	for _, name := range names {
		entries[name] = entryOf("of.example", sourcetest.Service{Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")}})
	}
	a.write("serviceentries", entries)
}

// entries says which ServiceEntries a store has, and whether they are stale.
func entries(in *store.Memory) (names []string) {
	endpoints := map[model.Ref]int{}
	for r := range in.List(model.Filter{Source: "k8s", Kind: model.KindEndpoint}) {
		endpoints[r.Owner]++
	}
	for r := range in.List(model.Filter{Source: "k8s", Kind: model.KindService}) {
		name := r.Namespace + "/" + r.Name
		if endpoints[r.Ref] != 1 {
			name += fmt.Sprintf(" with %d endpoints", endpoints[r.Ref])
		}
		if r.Status.Stale != "" {
			name += " stale"
		}
		names = append(names, name)
	}
	return names
}

func uids(in *store.Memory) map[model.Ref]model.UID {
	all := map[model.Ref]model.UID{}
	for r := range in.List(model.Filter{Source: "k8s"}) {
		if !r.Kind.Reserved() {
			all[r.Ref] = r.UID
		}
	}
	return all
}

func mustHaveEntries(t *testing.T, in *store.Memory, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, entries(in)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func mustHaveRejected(t *testing.T, s *supervise.Supervisor, when string, want ...string) {
	t.Helper()
	var got []string
	for _, f := range s.Status().Rejected {
		got = append(got, f.Object)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, rejected (-want +got):\n%s", when, diff)
	}
}

// entriesIn has a fault concern ServiceEntries alone, and those of one namespace if it is
// not empty.
func entriesIn(namespace string, f fault) fault {
	return only("serviceentries", func(r *http.Request) (*http.Response, error) {
		if _, is, _ := asked(r); namespace != "" && is != namespace {
			return nil, nil
		}
		return f(r)
	})
}

var forbidden = rejects(http.StatusForbidden, "Forbidden")

// late is the body of an answer that has begun, and goes on at some time.
type late struct {
	io.ReadCloser
	of *http.Request
	at time.Time
}

// Read implements [io.Reader].
func (l *late) Read(b []byte) (int, error) {
	select {
	case <-time.After(time.Until(l.at)):
	case <-l.of.Context().Done():
		return 0, l.of.Context().Err()
	}
	return l.ReadCloser.Read(b)
}

// What is stored of a kind that could not be read when a run began stays when it can be:
// it is listed part by part, and each part a moment after the API server begins to answer.
// A listing that was made before a part was there may be passed on after.
func TestKindThatBecomesReadableLosesNothing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		namespaces []string
		goesOn     func(start time.Time, namespace string) time.Time // when an answer goes on that begins now
		unread     []string
	}{
		"as one": {nil, func(time.Time, string) time.Time { return time.Now().Add(5 * time.Millisecond) }, []string{"serviceentries"}},
		"two namespaces, one after the other": {[]string{"a", "b"}, func(start time.Time, namespace string) time.Time {
			if namespace == "a" {
				return start.Add(30 * time.Second)
			}
			return start.Add(30*time.Second + 5*time.Millisecond)
		}, []string{"serviceentries of a", "serviceentries of b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, in := newRegistry(false, of.namespaces...), store.NewMemory(store.Config{})
				writeEntries(r.api, "a/x", "b/x")
				_, stop := supervised(t, r, in)
				mustHaveEntries(t, in, "at first", "a/x", "b/x")
				before := uids(in)
				stop()

				r.api.fail(entriesIn("", forbidden), ends)
				s, stop := supervised(t, r, in)
				defer stop()
				mustHaveRejected(t, s, "without rights", of.unread...)
				mustHaveEntries(t, in, "without rights", "a/x stale", "b/x stale")
				start := time.Now()
				r.api.fail(entriesIn("", func(request *http.Request) (*http.Response, error) {
					_, namespace, _ := asked(request)
					response := r.api.watch(request)
					response.Body = &late{response.Body, request, of.goesOn(start, namespace)}
					return response, nil
				}), ends)
				pass(time.Minute)
				mustHaveRejected(t, s, "with rights")
				mustHaveEntries(t, in, "with rights", "a/x", "b/x")
				if diff := cmp.Diff(before, uids(in)); diff != "" {
					t.Errorf("records were deleted and written again (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// Nodes and pods are no records themselves. That they can be read is reported all the same.
func TestStatusSaysThatNodesAndPodsAreRead(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"nodes", "pods"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRegistry(false)
				r.api.fail(only(resource, forbidden), ends)
				s, stop := supervised(t, r, store.NewMemory(store.Config{}))
				defer stop()
				mustHaveRejected(t, s, "without rights", resource)
				at := time.Now().Add(time.Minute)
				r.api.fail(only(resource, func(request *http.Request) (*http.Response, error) {
					response := r.api.watch(request)
					response.Body = &late{response.Body, request, at}
					return response, nil
				}), ends)
				pass(30 * time.Second)
				mustHaveRejected(t, s, "while it is listed", resource)
				pass(time.Minute)
				mustHaveRejected(t, s, "with rights")
			})
		})
	}
}

// What went while Isthmus did not follow goes, and what is stored of a namespace that cannot
// be read stays until it can be. It does not matter whether the source was restricted to
// namespaces when that was stored.
func TestUnreadableNamespaceKeepsItsOwnAlone(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b"}
	for name, of := range map[string]struct {
		before, after []string // namespaces
		unreadable    string
		follows       bool // when objects go, and no watch can be resumed
		keeps         []string
	}{
		"it is restarted":        {all, all, "b", false, []string{"a/stays", "b/goes stale", "b/stays stale"}},
		"it runs":                {all, all, "b", true, []string{"a/stays", "b/goes stale", "b/stays stale"}},
		"namespaces are set":     {nil, all, "b", false, []string{"a/stays", "b/goes stale", "b/stays stale"}},
		"namespaces are not set": {all, nil, "", false, []string{"a/goes stale", "a/stays stale", "b/goes stale", "b/stays stale"}},
		"one is added":           {[]string{"a"}, all, "b", false, []string{"a/stays"}},
		"another one is added":   {[]string{"b"}, all, "b", false, []string{"a/stays", "b/goes stale", "b/stays stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, in := newRegistry(false, of.before...), store.NewMemory(store.Config{})
				writeEntries(r.api, "a/goes", "a/stays", "b/goes", "b/stays")
				_, stop := supervised(t, r, in)
				stop()
				before, cannot := uids(in), entriesIn(of.unreadable, forbidden)

				r.namespaces = of.after
				r.api.fail(cannot, ends)
				if of.follows {
					_, stop = supervised(t, r, in)
					mustHaveEntries(t, in, "before they go", "a/goes", "a/stays", "b/goes stale", "b/stays stale")
				}
				r.api.fail(forbidden, ends)
				writeEntries(r.api, "a/stays", "b/stays")
				r.api.compact()
				r.api.fail(cannot, ends)
				if of.follows {
					pass(time.Minute)
				} else {
					_, stop = supervised(t, r, in)
				}
				mustHaveEntries(t, in, "while it cannot be read", of.keeps...)
				r.api.fail(nil, ends)
				pass(time.Minute)
				mustHaveEntries(t, in, "when it can be read", "a/stays", "b/stays")
				for ref, uid := range uids(in) {
					if had, is := before[ref]; is && had != uid {
						t.Errorf("%s was deleted and written again", ref)
					}
				}
				stop()
			})
		})
	}
}

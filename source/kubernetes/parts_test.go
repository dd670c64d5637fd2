package kubernetes_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// Whichever namespaces can be read when, and however late each answer goes on, what is in
// the API server all the time is never deleted, and what is gone from a namespace that can
// be read goes.
func TestAnyNamespaceThatCanBeReadIsFollowed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		namespaces := rapid.SampledFrom(restrictions).Draw(rt, "at first")
		steps, wrong := rapid.SliceOfN(rapid.Custom(drawNamespaceStep), 1, 15).Draw(rt, "steps"), ""
		synctest.Test(t, func(t *testing.T) {
			h := &namespaceHistory{
				t: t, r: newRegistry(false, namespaces...), in: store.NewMemory(store.Config{}),
				unreadable: map[string]bool{}, offset: map[string]time.Duration{}, more: map[string]bool{},
			}
			wrong = h.run(steps)
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// long is how long it may take until what can be read is.
const long = 40 * time.Second

var (
	everyNamespace = []string{"a", "b", "c"}
	restrictions   = [][]string{nil, everyNamespace, {"c", "b", "a"}}
)

// namespaceStep is one thing that happens, and how long it lasts.
type namespaceStep struct {
	What       string
	Namespace  string
	Offset     time.Duration // of an answer that goes on, which many do at the same time
	Namespaces []string
	Lasts      time.Duration
}

func drawNamespaceStep(t *rapid.T) namespaceStep {
	return namespaceStep{
		What:       rapid.SampledFrom([]string{"forbidden", "allowed", "allowed", "all allowed", "changed", "too old", "restarted"}).Draw(t, "what"),
		Namespace:  rapid.SampledFrom(everyNamespace).Draw(t, "namespace"),
		Offset:     rapid.SampledFrom([]time.Duration{0, 2 * time.Millisecond, 5 * time.Millisecond, 9 * time.Millisecond}).Draw(t, "offset"),
		Namespaces: rapid.SampledFrom(restrictions).Draw(t, "namespaces"),
		Lasts:      rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, time.Second, 7 * time.Second, long}).Draw(t, "lasts"),
	}
}

// namespaceHistory is one of a cluster that Isthmus reads, a process after the other.
type namespaceHistory struct {
	t          *testing.T
	r          *registry
	in         *store.Memory
	s          *supervise.Supervisor
	stop       func()
	unreadable map[string]bool
	offset     map[string]time.Duration
	more       map[string]bool // namespaces with an object that comes and goes
}

func (h *namespaceHistory) run(steps []namespaceStep) (wrong string) {
	h.write()
	h.s, h.stop = supervised(h.t, h.r, h.in)
	defer func() { h.stop() }()
	before := uids(h.in)
	for _, s := range steps {
		h.step(s)
		pass(s.Lasts)
		now := uids(h.in)
		maps.DeleteFunc(now, func(ref model.Ref, _ model.UID) bool { _, had := before[ref]; return !had })
		if diff := cmp.Diff(before, now); diff != "" {
			return "it was deleted (-before +after):\n" + diff
		}
		for _, namespace := range everyNamespace {
			if s.Lasts == long && h.canBeRead(namespace) && !h.more[namespace] && slices.ContainsFunc(entries(h.in), isMoreOf(namespace)) {
				return fmt.Sprintf("it can be read, and there is %v", entries(h.in))
			}
		}
	}
	h.step(namespaceStep{What: "all allowed"})
	pass(2 * time.Minute)
	if diff := cmp.Diff(h.names(), entries(h.in)); diff != "" || len(h.s.Status().Rejected) > 0 {
		return "in the end (-want +got):\n" + diff
	}
	return ""
}

// canBeRead reports whether a namespace can be, as it is asked for now.
func (h *namespaceHistory) canBeRead(namespace string) bool {
	return !h.unreadable[namespace] && (len(h.r.namespaces) > 0 || !anyOf(h.unreadable))
}

func anyOf(unreadable map[string]bool) bool {
	return slices.Contains(slices.Collect(maps.Values(unreadable)), true)
}

func isMoreOf(namespace string) func(string) bool {
	return func(entry string) bool { return strings.HasPrefix(entry, namespace+"/more") }
}

func (h *namespaceHistory) step(s namespaceStep) {
	switch s.What {
	case "forbidden", "allowed":
		h.unreadable[s.Namespace], h.offset[s.Namespace] = s.What == "forbidden", s.Offset
		h.r.api.fail(h.fault(), ends)
	case "all allowed":
		clear(h.unreadable)
		h.r.api.fail(h.fault(), ends)
	case "changed":
		h.change(s.Namespace)
	case "too old":
		h.r.api.fail(h.fault(), ends)
		h.change(s.Namespace)
		h.r.api.compact()
	case "restarted":
		h.stop()
		h.change(s.Namespace)
		h.r.namespaces = s.Namespaces
		h.s, h.stop = supervised(h.t, h.r, h.in)
	}
}

func (h *namespaceHistory) change(namespace string) {
	h.more[namespace] = !h.more[namespace]
	h.write()
}

func (h *namespaceHistory) names() (names []string) {
	for _, namespace := range everyNamespace {
		if h.more[namespace] {
			names = append(names, namespace+"/more")
		}
		names = append(names, namespace+"/stays")
	}
	return names
}

func (h *namespaceHistory) write() { writeEntries(h.r.api, h.names()...) }

// fault is how ServiceEntries can be read now. Watches go on when the next ten seconds
// begin, or a moment after that.
func (h *namespaceHistory) fault() fault {
	unreadable, offset := maps.Clone(h.unreadable), maps.Clone(h.offset)
	return entriesIn("", func(r *http.Request) (*http.Response, error) {
		_, namespace, _ := asked(r)
		if unreadable[namespace] || namespace == "" && anyOf(unreadable) || r.URL.Query().Get("watch") == "" {
			return forbidden(r)
		}
		response := h.r.api.watch(r)
		response.Body = &late{response.Body, r, time.Now().Truncate(10 * time.Second).Add(10*time.Second + offset[namespace])}
		return response, nil
	})
}

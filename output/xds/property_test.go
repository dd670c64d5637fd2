package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/testkit/xdsclient"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push"
)

// TestEveryClientEndsWithItsView is the law of all that lies between the store
// and the clients: whatever the sources say, and whatever the clients do
// meanwhile, once it is quiet every client holds exactly its view; it was sent
// nothing without a reason, which the clients check of every message; and
// nothing at all before the catalog was primed.
func TestEveryClientEndsWithItsView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(0, 3).Draw(t, "before priming") {
			h.step()
		}
		h.prime()
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			h.step()
		}
		h.mend()
		h.comeToRest()
	})
}

// order is that of merging. The first source has to be listed before anything
// is served, the second may be.
var order = []string{"first", "second"}

// history is one run of the whole: what the sources said so far, and the
// clients there are.
type history struct {
	t        *rapid.T
	rig      *rig
	records  records
	clients  []*actor
	patient  bool
	primed   bool
	complete bool
}

// actor is a client with what the history knows of its nature.
type actor struct {
	*xdsclient.Client
	name, kind, namespace string
	follows               bool
	asked                 map[string]bool // types
	away                  bool
}

func newHistory(t *rapid.T) *history {
	h := &history{t: t, records: records{}, patient: rapid.Bool().Draw(t, "patient")}
	engine := push.Config{Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
	if !h.patient {
		engine.Patience = time.Millisecond
	}
	if rapid.Bool().Draw(t, "small responses") {
		engine.Budget = 300
	}
	wait := time.Duration(0)
	if rapid.Bool().Draw(t, "wait for all") {
		wait = time.Hour
	}
	h.rig = newStoredRig(t, setup{engine: engine, primedWithin: time.Hour, sources: order}, wait)
	h.put(only(fromSource("first", service("a", probe)), "*"))
	return h
}

// prime lets the sources finish their first listing.
func (h *history) prime() {
	for _, c := range h.clients {
		for _, typeURL := range types {
			if n := responses(c.Client, typeURL); n != 0 {
				h.t.Fatalf("%s got %d responses before anything was primed", c.name, n)
			}
		}
	}
	h.mark("first")
	if rapid.Bool().Draw(h.t, "the second is listed too") {
		h.finishListing()
	}
}

func (h *history) finishListing() {
	if !h.complete {
		h.mark("second")
		h.complete = true
	}
}

func (h *history) mark(source string) {
	h.rig.put(model.Record{
		Ref:  model.Ref{Kind: model.KindSource, Key: model.Key{Source: source, Name: "listing"}},
		Spec: model.SourceMark{},
	})
}

func (h *history) put(list ...model.Record) {
	for _, record := range list {
		h.records[record.Ref] = record
	}
	h.rig.put(list...)
}

func (h *history) remove(list ...model.Record) {
	for _, record := range list {
		delete(h.records, record.Ref)
	}
	h.rig.remove(list...)
}

// step is one thing that happens: half of the time to the catalog.
func (h *history) step() {
	switch n := rapid.IntRange(0, 9).Draw(h.t, "what"); {
	case n < 4:
		h.put(h.drawRecords()...)
	case n == 4:
		h.deleteSome()
	case n == 5 && len(h.clients) < 6:
		h.connect()
	case len(h.clients) > 0:
		h.act(rapid.SampledFrom(h.clients).Draw(h.t, "who"))
	default:
		h.connect()
	}
}

func (h *history) deleteSome() {
	refs := h.records.refs()
	if len(refs) < 2 {
		return
	}
	n := rapid.IntRange(1, min(3, len(refs))).Draw(h.t, "how many")
	var list []model.Record
	for _, ref := range rapid.Permutation(refs).Draw(h.t, "deleted")[:n] {
		if ref.Name != probe {
			list = append(list, h.records[ref])
		}
	}
	h.remove(list...)
}

// mend removes all that clients find fault with, and lets everyone answer.
func (h *history) mend() {
	h.finishListing()
	var fixed, bad []model.Record
	for _, ref := range h.records.refs() {
		record := h.records[ref]
		switch spec := record.Spec.(type) {
		case model.Service:
			if spec.Hosts.Contains(badHost) {
				bad = append(bad, record)
			} else if speaks(spec, "HTTP2") {
				fixed = append(fixed, speakingAll(record, "HTTP"))
			}
		case model.Endpoint:
			if spec.Address == poison {
				spec.Address = "10.0.0.7"
				record.Spec = spec
				fixed = append(fixed, record)
			}
		case model.Workload:
			if spec.Endpoint.Address == poison {
				spec.Endpoint.Address = "10.0.0.7"
				record.Spec = spec
				fixed = append(fixed, record)
			}
		}
	}
	h.put(fixed...)
	h.remove(bad...)
	for _, c := range h.clients {
		if c.away {
			c.Reconnect(rapid.Bool().Draw(h.t, "keeps"))
		}
		c.Release()
	}
}

// comeToRest waits until every client holds its view, makes sure that nothing
// more is on its way, and that they still do.
func (h *history) comeToRest() {
	for _, c := range h.clients {
		c.Await("its view", func(s *xdsclient.State) bool { return h.difference(c, s) == "" })
	}
	h.rig.dispatched()
	for _, c := range h.clients {
		c.Unfollow()
		for _, typeURL := range types {
			if name := c.probeOf(typeURL); name != "" && c.asked[typeURL] {
				c.Quiet(typeURL, name)
			}
		}
		c.Await("its view, still", func(s *xdsclient.State) bool { return h.difference(c, s) == "" })
		c.Await("the assignments of its clusters", func(s *xdsclient.State) bool { return len(s.Unwarmed()) == 0 })
		c.Close()
	}
}

// difference says how what a client holds differs from what it should.
func (h *history) difference(c *actor, s *xdsclient.State) string {
	view := h.records.view(order, c.kind, c.namespace)
	var b strings.Builder
	for _, typeURL := range types {
		subscribed := s.Subscribed(typeURL)
		everything := slices.Contains(subscribed, "*")
		for name, want := range view[typeURL] {
			if !everything && !slices.Contains(subscribed, name) {
				continue
			}
			if r, ok := s.Get(typeURL, name); !ok || describeResource(r) != want {
				fmt.Fprintf(&b, "%s should be %q; ", name, want)
			}
		}
		for _, r := range s.Resources(typeURL) {
			if _, ok := view[typeURL][r.Name]; !ok && !c.mayKeep(r) {
				fmt.Fprintf(&b, "%s should not be there; ", r.Name)
			}
		}
	}
	return b.String()
}

// mayKeep reports whether a client may hold what is not in its view: in the
// state-of-the-world variant there is no way to say that an assignment or a
// route is gone. Of an assignment it can be said that it has become empty.
func (c *actor) mayKeep(r xdsclient.Resource) bool {
	return !c.IsDelta() && (r.Type == rds || r.Type == eds && describeResource(r) == "")
}

var types = []string{cds, eds, lds, rds}

func (c *actor) probeOf(typeURL string) string {
	switch {
	case typeURL == lds && c.kind == envoy.KindGRPC:
		return probe + ":80"
	case typeURL == lds || typeURL == rds && c.kind == envoy.KindEnvoy:
		return ""
	default:
		return clusterOf(probe)
	}
}

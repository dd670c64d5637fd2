package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// TestEveryClientEndsWithItsView is the law of all that lies between the store
// and the clients: whatever the sources say, and whatever the clients do
// meanwhile, once it is quiet every client holds exactly its view; it was sent
// nothing without a reason, which the clients check of every message; and
// nothing at all before the catalog was primed.
func TestEveryClientEndsWithItsView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(0, 3).Draw(t, "to begin with") {
			h.put(h.drawRecords()...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "before priming") {
			h.step()
		}
		h.prime()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			h.step()
		}
		h.repair()
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
	complete bool // every source has been listed
}

// actor is a client with what the history knows of its nature.
type actor struct {
	*xdsclient.Client
	name, kind, namespace, app string
	follows                    bool
	asked                      map[string]bool // types
	nacking, holds, away       bool
}

func newHistory(t *rapid.T) *history {
	h := &history{t: t, records: records{}, patient: rapid.IntRange(0, 3).Draw(t, "patient") > 0}
	engine := push.Config{Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
	if !h.patient {
		engine.Patience = time.Millisecond
	}
	if rapid.Bool().Draw(t, "small turns") {
		engine.Turn = rapid.IntRange(1, 16).Draw(t, "names of a turn")
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

// finishListing makes every source listed. Until then no client gets the answer that
// something does not exist.
func (h *history) finishListing() {
	if h.complete {
		return
	}
	for _, c := range h.clients {
		c.Read(func(s *xdsclient.State) {
			for _, typeURL := range []string{cds, eds, rds} {
				if name := clusterOf("none.example"); s.Removals(typeURL, name)+s.Received(typeURL, name) > 0 {
					h.t.Fatalf("%s got the answer that %s does not exist before all sources were listed", c.name, name)
				}
			}
		})
	}
	h.mark("second")
	h.complete = true
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

// step is one thing that happens. Most follow each other at once, so that
// they cross whatever is on its way; now and then everybody gets a rest.
func (h *history) step() {
	switch n := rapid.IntRange(0, 11).Draw(h.t, "what"); {
	case n < 4:
		h.put(h.drawRecords()...)
	case n == 4 && rapid.Bool().Draw(h.t, "all of a host"):
		h.deleteHost()
	case n == 4:
		h.deleteSome()
	case n == 5 && len(h.clients) < 6, len(h.clients) == 0:
		h.connect()
	case n == 6 && h.complete:
		h.rest()
	default:
		h.act(rapid.SampledFrom(h.clients).Draw(h.t, "who"))
	}
}

// rest gives clients the time to get what there is.
func (h *history) rest() {
	h.rig.dispatched()
	for _, c := range h.clients {
		if !c.away && !c.holds && !c.nacking { // else it need not have its view
			c.AwaitNone(func(s *xdsclient.State) string { return h.difference(c, s) })
		}
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

// deleteHost makes a host go from all namespaces and sources.
func (h *history) deleteHost() {
	host := rapid.SampledFrom(hosts).Draw(h.t, "deleted")
	var list []model.Record
	for _, ref := range h.records.refs() {
		if ref.Kind == model.KindService && ref.Name == host {
			list = append(list, h.records[ref])
		}
	}
	h.remove(list...)
}

// repair removes all that clients find fault with, and lets everyone answer.
func (h *history) repair() {
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
		c.AwaitNone(func(s *xdsclient.State) string { return h.difference(c, s) })
	}
	h.rig.dispatched()
	for _, c := range h.clients {
		c.Unfollow()
		for _, typeURL := range types {
			if name := c.probeOf(typeURL); name != "" && c.asked[typeURL] {
				c.Quiet(typeURL, name)
			}
		}
		c.AwaitNone(func(s *xdsclient.State) string { return h.difference(c, s) })
		c.AwaitNone(unwarmed)
		c.Close()
	}
}

// unwarmed says which clusters still wait for their load assignments.
func unwarmed(s *xdsclient.State) string {
	if names := s.Unwarmed(); len(names) > 0 {
		return fmt.Sprintf("the assignments of %q", names)
	}
	return ""
}

// difference says how what a client holds differs from what it should.
func (h *history) difference(c *actor, s *xdsclient.State) string {
	view := h.records.view(order, viewer{c.kind, c.namespace, model.MapOf(map[string]string{"app": c.app})})
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
			if _, ok := view[typeURL][r.Name]; !ok && !c.mayKeep(r, slices.Contains(subscribed, r.Name)) {
				fmt.Fprintf(&b, "%s should not be there; ", r.Name)
			}
		}
	}
	return b.String()
}

// mayKeep reports whether a client may hold what is not in its view: in the
// state-of-the-world variant there is no way to say that an assignment or a
// route is gone. Of an assignment that the client names it can be said that it
// has become empty, and of a route that an Envoy names, that it leads nowhere.
func (c *actor) mayKeep(r xdsclient.Resource, named bool) bool {
	if c.IsDelta() {
		return r.Type == rds && named && c.kind == envoy.KindEnvoy && describeResource(r) == ""
	}
	return r.Type == rds || r.Type == eds && (describeResource(r) == "" || !named)
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

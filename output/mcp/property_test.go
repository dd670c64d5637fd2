package mcp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestEverySinkEndsWithTheState is the law of this protocol: whatever changes, and
// however sinks take it — in full states or increments, with NACKs, with streams that
// end and begin again — once it is quiet each holds exactly what there is, and its
// version.
func TestEverySinkEndsWithTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			h.step()
		}
		h.end()
	})
}

type history struct {
	t     *rapid.T
	rig   *rig
	sinks []*actor
}

// actor is a sink with its habits.
type actor struct {
	*mcpsink.Follower
	habit int
	away  bool
}

// The habits: what a sink says of increments.
const (
	never = iota
	always
	pilots // but not with a NACK
	fickle
	habits
)

func newHistory(t *rapid.T) *history {
	s := setup{incomplete: rapid.Bool().Draw(t, "something is not listed yet")}
	if rapid.Bool().Draw(t, "small messages") {
		s.largest = 1500
	}
	if rapid.Bool().Draw(t, "debounced") {
		s.debounce = world.Debounce{Quiet: time.Millisecond, Max: 5 * time.Millisecond}
	}
	h := &history{t: t, rig: newRig(t, s)}
	h.rig.put(entries, "a/zero", "0")
	return h
}

func (h *history) step() {
	switch n := rapid.IntRange(0, 9).Draw(h.t, "what"); {
	case n < 5 || len(h.sinks) == 0 && n > 5:
		h.change()
	case n == 5 && len(h.sinks) < 5:
		h.join()
	case n == 6 && rapid.Bool().Draw(h.t, "listed"):
		h.rig.finish()
	case len(h.sinks) > 0:
		h.comeOrGo(rapid.SampledFrom(h.sinks).Draw(h.t, "who"))
	}
}

func (h *history) change() {
	collection := rapid.SampledFrom(collections).Draw(h.t, "collection")
	put := map[string]string{}
	var gone []string
	for range rapid.IntRange(1, 6).Draw(h.t, "changes") {
		name := fmt.Sprintf("a/%d", rapid.IntRange(0, 9).Draw(h.t, "name"))
		switch content := rapid.SampledFrom([]string{"1", "2", "bad", "", "large"}).Draw(h.t, "content"); content {
		case "":
			delete(put, name)
			gone = append(gone, name)
		case "large":
			put[name] = fmt.Sprintf("%0600d", 0)
		default:
			put[name] = content
		}
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { _, there := put[name]; return there })
	h.rig.change(collection, put, gone)
}

func (h *history) join() {
	a := &actor{Follower: &mcpsink.Follower{ID: fmt.Sprintf("sink-%d", len(h.sinks)), Collections: collections}}
	a.habit = rapid.IntRange(0, habits-1).Draw(h.t, "habit")
	a.Incremental = a.habit != never
	dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(h.t, "seed"), 0))
	a.Decide = func(m *wire.Resources) (string, bool) {
		bad := slices.ContainsFunc(m.GetResources(), isBad)
		switch {
		case bad && a.habit == pilots:
			return "bad", false
		case bad:
			return "bad", a.habit != never && (a.habit != fickle || dice.IntN(2) == 0)
		default:
			return "", a.habit != never && (a.habit != fickle || dice.IntN(2) == 0)
		}
	}
	h.sinks = append(h.sinks, a)
	h.connect(a)
}

func (h *history) connect(a *actor) {
	if err := a.Connect(h.rig.dial()); err != nil {
		h.t.Fatalf("%s: %v", a.ID, err)
	}
	a.away = false
}

func (h *history) comeOrGo(a *actor) {
	if a.away {
		h.connect(a)
		return
	}
	a.Close()
	a.away = true
}

// end replaces all that there is by what every sink takes, and waits until it has it.
func (h *history) end() {
	h.rig.finish()
	for _, collection := range collections {
		put := map[string]string{}
		for name := range h.rig.want(collection) {
			put[name] = "last"
		}
		put["a/last"] = collection
		h.rig.change(collection, put, nil)
	}
	for _, a := range h.sinks {
		if a.away {
			h.connect(a)
		}
	}
	for _, a := range h.sinks {
		for _, collection := range collections {
			h.awaitState(a, collection)
		}
		a.Close()
	}
}

// awaitState waits until a sink holds what there is of a collection.
func (h *history) awaitState(a *actor, collection string) {
	want := h.rig.want(collection)
	timer := time.NewTimer(until.Patience)
	defer timer.Stop()
	for {
		var differs string
		if err := a.Read(collection, func(c *mcpsink.Collection, _ int) { differs = difference(c, want) }); err != nil {
			h.t.Fatal(err)
		}
		if differs == "" {
			return
		}
		select {
		case <-a.Changed():
		case <-timer.C:
			status, _ := h.rig.status(a.ID, collection)
			h.t.Fatalf("%s of habit %d: %s of %s; it stands as %+v", a.ID, a.habit, differs, collection, status)
		}
	}
}

// difference is how what a sink holds differs from what it should; empty if it does not.
func difference(c *mcpsink.Collection, want map[string]string) string {
	if !maps.Equal(c.Contents, want) {
		return fmt.Sprintf("it holds %v and should hold %v", c.Contents, want)
	}
	sum := world.VersionOfSet(func(yield func(string, world.Version) bool) {
		for name, version := range c.Versions {
			if v, _ := world.ParseVersion(version); !yield(name, v) {
				return
			}
		}
	})
	if c.Version != sum.String() {
		return fmt.Sprintf("the version of the whole is %s, and of what it holds %s", c.Version, sum)
	}
	return ""
}

package pushtest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// A type of which clients NACK two resources that have one domain, as Envoy does with
// virtual hosts. Domains change hands all the time.
func TestAdditionWhoseResourcesExcludeEachOther(t *testing.T) { Run(t, estate()) }

// estate is a producer of hosts that share some domains out among themselves.
func estate() Addition {
	return Addition{
		Order:  meshOrder,
		Rows:   []world.TypeSpec{{Name: "host", Needs: []string{"cluster"}, Fixed: true, Together: true, Exclusive: true}},
		Begin:  func() World { return &hosts{now: holdings{}} },
		Client: drawClient,
		Name: func(t *rapid.T, _ world.Row) string {
			return rapid.SampledFrom([]string{"h0", "h1", "h2", "h3"}).Draw(t, "host")
		},
		Refers: func(_ world.Row, body []byte, to string) []string { return refersTo(body, to) },
		Excludes: func(_ world.Row, a, b []byte) bool {
			return slices.ContainsFunc(refersTo(a, "domain"), func(domain string) bool { return slices.Contains(refersTo(b, "domain"), domain) })
		},
		Beside: []Addition{mesh()},
	}
}

// holdings are the hosts that there are, with what they have.
type holdings map[string]*held

type held struct {
	name    string
	content []byte
}

func (h *held) Slot() any { return h.name }

func (h *held) Encode() world.Encoded {
	return world.Encoded{Name: h.name, Version: world.VersionOf(h.content), Body: h.content}
}

func (h *held) Refers(to string) iter.Seq[string] { return slices.Values(refersTo(h.content, to)) }

func (w holdings) View(world.Row, world.Client) world.View { return "" }

func (w holdings) Names(world.View, world.Row) iter.Seq[string] { return maps.Keys(w) }

func (w holdings) Find(_ world.View, _ world.Row, name string) (world.Subject, bool) {
	h, ok := w[name]
	return h, ok
}

func (holdings) Complete() bool { return true }

// hosts is a world of them.
type hosts struct {
	now    holdings
	absent map[string]bool
	owner  map[string]string // by domain
	count  int
}

func (w *hosts) Step(t *rapid.T) world.Update {
	if w.owner == nil {
		w.owner, w.absent = map[string]string{}, map[string]bool{}
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		name := rapid.SampledFrom([]string{"h0", "h1", "h2", "h3"}).Draw(t, "host")
		if rapid.IntRange(0, 3).Draw(t, "comes or goes") == 0 {
			w.absent[name] = !w.absent[name]
			continue
		}
		w.owner[rapid.SampledFrom([]string{"d0", "d1", "d2"}).Draw(t, "domain")] = name
	}
	w.count++
	next := holdings{}
	u := world.Update{World: next}
	for i := range 4 {
		name := fmt.Sprint("h", i)
		was := w.now[name]
		if !w.absent[name] {
			next[name] = &held{name, w.content(i)}
		}
		is := next[name]
		switch {
		case was == nil && is == nil:
		case was != nil && is != nil && bytes.Equal(was.content, is.content):
			next[name] = was
		default:
			u.Changed = append(u.Changed, world.Changed{Name: name, Revoked: is == nil})
		}
	}
	w.now = next
	return u
}

func (w *hosts) content(i int) []byte {
	text := fmt.Sprintf("cluster=c%d", i)
	for _, domain := range slices.Sorted(maps.Keys(w.owner)) {
		if w.owner[domain] == fmt.Sprint("h", i) {
			text += " domain=" + domain
		}
	}
	return []byte(text)
}

func (w *hosts) Sees(world.Row, world.Client) map[string]world.Encoded {
	all := map[string]world.Encoded{}
	for name, h := range w.now {
		all[name] = h.Encode()
	}
	return all
}

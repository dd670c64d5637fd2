package pushtest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// A type whose resources refer to each other across names: routes to clusters of
// other names, tables to many, clusters to the assignments and secrets they name.
func TestAdditionThatRefersAcrossNames(t *testing.T) { Run(t, mesh()) }

// A second producer of secrets beside the one of services that refers to them:
// what a client sees of secrets depends on its account, of services on its
// namespace.
func TestSecretsBesideServices(t *testing.T) {
	a := vault()
	a.Beside = []Addition{mesh()}
	Run(t, a)
}

const (
	clusters world.Row = iota
	assignments
	routes
	tables
)

var meshOrder = []string{"cluster", "assignment", "secret", "route", "table"}

// mesh is a producer of the resources of services.
func mesh() Addition {
	return Addition{
		Order: meshOrder,
		Rows: []world.TypeSpec{
			clusters:    {Name: "cluster", Whole: true, Brings: []string{"assignment", "secret"}},
			assignments: {Name: "assignment", Awaited: true, Empty: empty},
			routes:      {Name: "route", Needs: []string{"cluster"}},
			tables: {
				Name: "table", Needs: []string{"cluster"}, Aggregate: func(string) bool { return true },
				Absent: func(string, world.Mode) world.Absence { return world.Empty }, Empty: emptyTable,
			},
		},
		Begin:  func() World { return newThings(func(c world.Client) string { return c.Namespace }) },
		Client: drawClient,
		Name:   drawName,
		Refers: func(_ world.Row, body []byte, to string) []string { return refersTo(body, to) },
	}
}

// vault is a producer of secrets, each for some accounts.
func vault() Addition {
	account := func(c world.Client) []string { return []string{c.Account} }
	return Addition{
		Order:  meshOrder,
		Rows:   []world.TypeSpec{{Name: "secret", Awaited: true, Audience: account}},
		Begin:  func() World { return newThings(func(c world.Client) string { return c.Account }) },
		Client: drawClient,
		Name:   drawName,
	}
}

func drawClient(t *rapid.T) world.Client {
	return world.Client{
		Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
		Account:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account"),
	}
}

func drawName(t *rapid.T, r world.Row) string {
	return fmt.Sprint([]string{"c", "eds-of-c", "r", "t"}[r], rapid.IntRange(0, 3).Draw(t, "name"))
}

// emptyTable is one that leads nowhere; there is none of the last name.
func emptyTable(name string) world.Encoded {
	if name == "t3" {
		return world.Encoded{}
	}
	return (&item{place: place{tables, name}, content: "empty"}).Encode()
}

func empty(name string) world.Encoded {
	return world.Encoded{Name: name, Version: world.VersionOf(nil)}
}

// item is a resource for those with one key, or for all.
type item struct {
	place
	key     string // who sees it; empty for all
	content string // words, some of which are references as type=name
}

type itemSlot struct {
	place
	key string
}

func (i *item) Slot() any { return itemSlot{i.place, i.key} }

func (i *item) Encode() world.Encoded {
	return world.Encoded{Name: i.name, Version: world.VersionOf([]byte(i.content)), Body: []byte(i.content)}
}

func (i *item) Refers(to string) iter.Seq[string] {
	return slices.Values(refersTo([]byte(i.content), to))
}

func refersTo(body []byte, to string) (names []string) {
	for word := range strings.FieldsSeq(string(body)) {
		if name, ok := strings.CutPrefix(word, to+"="); ok {
			names = append(names, name)
		}
	}
	return names
}

// things is a world of items, of which a client sees those with its key, and
// those for all under names that it has none of its own of.
type things struct {
	keyOf func(world.Client) string
	now   stock
	count int
	spoil func(*world.Update) // makes a mistake; nil if it makes none
}

type stock struct {
	keyOf func(world.Client) string
	items map[itemSlot]*item
	moved map[string]string // whose items those with a key see instead of their own
}

// key is that of the items a client sees.
func (w stock) key(c world.Client) string {
	if to, ok := w.moved[w.keyOf(c)]; ok {
		return to
	}
	return w.keyOf(c)
}

// audience are the keys of the clients that see the items of a key. Who has moved
// may be back before the engine looks, and so be seen by it as never having moved.
func (w stock) audience(key string) []string {
	if len(w.moved) > 0 {
		return []string{"a", "b"}
	}
	return []string{key}
}

func newThings(keyOf func(world.Client) string) *things { return &things{keyOf: keyOf} }

func (w *things) Step(t *rapid.T) world.Update {
	next := stock{w.keyOf, maps.Clone(w.now.items), maps.Clone(w.now.moved)}
	if next.items == nil {
		next.items = map[itemSlot]*item{}
	}
	var u world.Update
	if rapid.IntRange(0, 7).Draw(t, "moves") == 0 {
		own := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who moves")
		if next.moved == nil {
			next.moved = map[string]string{}
		}
		next.moved[own] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "where to")
		u.Reviewed = []string{own}
	}
	for range rapid.IntRange(1, 4).Draw(t, "things") {
		u.Changed = append(u.Changed, w.change(t, next))
	}
	w.now, u.World = next, next
	if w.spoil != nil {
		w.spoil(&u)
	}
	return u
}

// change changes one item of a world, and says so.
func (w *things) change(t *rapid.T, next stock) world.Changed {
	r := world.Row(0)
	if w.keyOf(world.Client{Namespace: "a"}) == "a" { // it makes all types
		r = world.Row(rapid.IntRange(0, 3).Draw(t, "row"))
	}
	slot := itemSlot{place{r, drawName(t, r)}, rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "key")}
	c := world.Changed{Row: r, Name: slot.name, Urgent: rapid.IntRange(0, 3).Draw(t, "urgent") == 0}
	if slot.key != "" {
		c.Audience = next.audience(slot.key)
	}
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		delete(next.items, slot)
		c.Revoked = rapid.IntRange(0, 5).Draw(t, "revoked") == 0
		return c
	}
	w.count++
	next.items[slot] = &item{slot.place, slot.key, fmt.Sprint("content", w.count%7, drawReferences(t, r))}
	return c
}

func drawReferences(t *rapid.T, r world.Row) (text string) {
	n := func() int { return rapid.IntRange(0, 3).Draw(t, "refers to") }
	switch r {
	case clusters:
		return fmt.Sprintf(" assignment=eds-of-c%d secret=c%d", n(), n())
	case routes:
		return fmt.Sprintf(" cluster=c%d", n())
	case tables:
		return fmt.Sprintf(" cluster=c%d cluster=c%d", n(), n())
	default:
		return ""
	}
}

func (w *things) Sees(r world.Row, c world.Client) map[string]world.Encoded {
	all := map[string]world.Encoded{}
	for _, key := range []string{"", w.now.key(c)} {
		for slot, i := range w.now.items {
			if slot.Row == r && slot.key == key {
				all[slot.name] = i.Encode()
			}
		}
	}
	return all
}

func (w stock) View(_ world.Row, c world.Client) world.View { return w.key(c) }

func (w stock) Names(v world.View, r world.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		for slot := range w.items {
			if _, twice := w.items[itemSlot{slot.place, ""}]; slot.key != "" && twice {
				continue
			}
			if slot.Row == r && (slot.key == "" || slot.key == v) && !yield(slot.name) {
				return
			}
		}
	}
}

func (w stock) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	i, ok := w.items[itemSlot{place{r, name}, v.(string)}]
	if !ok {
		i, ok = w.items[itemSlot{place{r, name}, ""}]
	}
	return i, ok
}

func (stock) Complete() bool { return true }

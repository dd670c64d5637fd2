package pushtest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// neighbour is a producer beside the added one: a whole type, and a type that needs it,
// with other names.
func neighbour(prefix string) Addition {
	return Addition{
		Rows: []world.TypeSpec{
			{Name: prefix + "/whole", Whole: true},
			{Name: prefix + "/part", Needs: []string{prefix + "/whole"}, Empty: emptyNote},
		},
		Begin:  func() World { return &notes{} },
		Client: func(*rapid.T) world.Client { return world.Client{} },
		Name:   drawNote,
		Refers: func(_ world.Row, body []byte, _ string) []string { return refersOf(body) },
	}
}

func drawNote(t *rapid.T, r world.Row) string {
	return fmt.Sprint([]string{"whole", "part"}[r], rapid.IntRange(0, 3).Draw(t, "note"))
}

func emptyNote(name string) world.Encoded { return (&note{name: name, content: "nothing"}).Encode() }

// note is a resource that lists the names it refers to in its content.
type note struct {
	row           world.Row
	name, content string
}

func (n *note) Slot() any { return place{n.row, n.name} }

func (n *note) Encode() world.Encoded {
	return world.Encoded{Name: n.name, Version: world.VersionOf([]byte(n.content)), Body: []byte(n.content)}
}

func (n *note) Refers(string) iter.Seq[string] { return slices.Values(refersOf([]byte(n.content))) }

// refersOf returns the names that a note refers to: the words after the first.
func refersOf(body []byte) []string {
	if words := strings.Fields(string(body)); len(words) > 1 {
		return words[1:]
	}
	return nil
}

// notes is a world of notes. All clients see all of it.
type notes struct {
	now   notesWorld
	count int
}

type notesWorld [2]map[string]*note

func (w *notes) Step(t *rapid.T) world.Update {
	next := notesWorld{maps.Clone(w.now[0]), maps.Clone(w.now[1])}
	var changed []world.Changed
	for range rapid.IntRange(1, 3).Draw(t, "notes") {
		r := world.Row(rapid.IntRange(0, 1).Draw(t, "row"))
		name := drawNote(t, r)
		changed = append(changed, world.Changed{Row: r, Name: name})
		if next[r] == nil {
			next[r] = map[string]*note{}
		}
		if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
			delete(next[r], name)
			continue
		}
		w.count++
		content := fmt.Sprint("content", w.count%5)
		if r == 1 {
			content += " " + drawNote(t, 0)
		}
		next[r][name] = &note{r, name, content}
	}
	w.now = next
	return world.Update{World: next, Changed: changed}
}

func (w *notes) Sees(r world.Row, _ world.Client) map[string]world.Encoded {
	all := map[string]world.Encoded{}
	for name, n := range w.now[r] {
		all[name] = n.Encode()
	}
	return all
}

func (w notesWorld) View(world.Row, world.Client) world.View { return "everything" }

func (w notesWorld) Names(_ world.View, r world.Row) iter.Seq[string] { return maps.Keys(w[r]) }

func (w notesWorld) Find(_ world.View, r world.Row, name string) (world.Subject, bool) {
	n, ok := w[r][name]
	return n, ok
}

func (w notesWorld) Complete() bool { return true }

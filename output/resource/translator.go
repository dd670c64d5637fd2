package resource

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Options say how resources are written.
type Options struct {
	// Wrapped has the body of a resource be a google.protobuf.Any that holds the
	// resource, as xDS has it, and not the resource itself.
	Wrapped bool
	// Self is the name that paths have of this Isthmus; see [model.Path].
	Self string
}

// Translator makes worlds of snapshots, each from the one before. Its methods are
// called by one goroutine, but for [Translator.LeftOut].
type Translator struct {
	table   Table
	options Options
	kinds   map[string]istio.Definition // by name
	rows    map[content][]world.Row

	objects  map[content]objects // never written: each step replaces it
	begun    bool
	claims   claims
	services map[catalog.ServiceKey]*standing
	scopes   map[string][]string // names of Sidecars, by namespace

	mu      sync.Mutex
	leftOut map[slot]string // why
}

// standing is what of a service is in the index.
type standing struct {
	claims []qualified
	names  []string // of its resources
}

// NewTranslator returns a translator to the types of a table.
func NewTranslator(table Table, o Options) *Translator {
	t := &Translator{
		table: table, options: o, kinds: map[string]istio.Definition{}, rows: map[content][]world.Row{},
		objects: map[content]objects{}, claims: claims{}, services: map[catalog.ServiceKey]*standing{}, scopes: map[string][]string{},
		leftOut: map[slot]string{},
	}
	for _, c := range table.contents() {
		t.rows[c], t.objects[c] = table.of(c), noObjects()
		t.kinds[c.kind] = table[t.rows[c][0]].Kind
	}
	return t
}

// Step is what a change makes of the world: the newest one, and what may differ from
// the one before. Now is the snapshot that the change led to. The first step takes in
// all of it, whatever the change says. The scopes of the root namespace are no others.
func (t *Translator) Step(now *catalog.Snapshot, c catalog.Change, complete bool, _ string) world.Update {
	s := &step{Translator: t, now: now, edits: map[content]*immutable.Editor[string, *object]{}, changed: map[slot]struct{}{}}
	if t.begun {
		s.take(c)
	} else {
		s.takeAll()
	}
	t.begun = true
	return world.Update{World: s.finish(complete), Changed: s.changes(), Committed: c.Committed}
}

// LeftOut yields the objects that are no resource, and why.
func (t *Translator) LeftOut() iter.Seq2[string, string] {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := maps.Clone(t.leftOut)
	return func(yield func(string, string) bool) {
		for _, at := range slices.SortedFunc(maps.Keys(left), slot.compare) {
			if !yield(at.content.kind+" "+at.name, left[at]) {
				return
			}
		}
	}
}

// note says why something is no resource; without a reason it is one, or gone.
func (t *Translator) note(at slot, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reason == "" {
		delete(t.leftOut, at)
	} else {
		t.leftOut[at] = reason
	}
}

func (s slot) compare(o slot) int {
	synthetic := 0
	if s.content.synthetic != o.content.synthetic {
		synthetic = 1
		if o.content.synthetic {
			synthetic = -1
		}
	}
	return cmp.Or(cmp.Compare(s.content.kind, o.content.kind), synthetic, cmp.Compare(s.name, o.name))
}

// compareKeys orders services as the catalog does.
func compareKeys(a, b catalog.ServiceKey) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Namespace, b.Namespace))
}

package storetest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// The world of random histories is small, so that its moves collide.
var (
	kinds      = []model.Kind{model.KindService, model.KindEndpoint, kindNote}
	sources    = []string{"consul", "files"}
	namespaces = []string{"", "default"}
	names      = []string{"a", "ab", "b"}
)

// move is the intended changes of one commit, to different records.
type move []intent

type intent struct {
	ref  model.Ref
	what deed
}

type deed int

const (
	doPut    deed = iota // create or change
	doDrop               // delete, if there
	doRepeat             // write the stored record again
	doStale              // write as if the record were of another revision
)

func (m move) has(what deed) bool {
	return slices.ContainsFunc(m, func(i intent) bool { return i.what == what })
}

// writes bases the move on the records that s holds now. changes reports whether a
// successful commit changes a record: it succeeds only if no other writer came
// between.
func (m move) writes(s Store, n int) (out []model.Write, changes bool) {
	for _, i := range m {
		stored, ok := s.Get(i.ref) // once: another writer may come between two
		w := model.Write{Record: saying(i.ref, n)}
		w.Record.UID, w.Record.Revision = stored.UID, stored.Revision
		switch i.what {
		case doPut:
			out, changes = append(out, w), true
		case doDrop:
			w.Delete = true
			out, changes = append(out, w), changes || ok
		case doRepeat:
			if ok {
				out = append(out, model.Write{Record: stored})
			}
		case doStale:
			w.Record.Revision++
			out, changes = append(out, w), true
		}
	}
	return out, changes
}

func anyRef() *rapid.Generator[model.Ref] {
	return rapid.Custom(func(t *rapid.T) model.Ref {
		return ref(rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom(sources).Draw(t, "source"),
			rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.SampledFrom(names).Draw(t, "name"))
	})
}

func anyMove() *rapid.Generator[move] {
	deeds := rapid.SampledFrom([]deed{doPut, doPut, doPut, doPut, doDrop, doDrop, doRepeat, doStale})
	one := rapid.Custom(func(t *rapid.T) intent { return intent{anyRef().Draw(t, "ref"), deeds.Draw(t, "deed")} })
	return rapid.Map(rapid.SliceOfNDistinct(one, 1, 3, func(i intent) model.Ref { return i.ref }),
		func(m []intent) move { return m })
}

func anyFilter() *rapid.Generator[model.Filter] {
	return rapid.Custom(func(t *rapid.T) model.Filter {
		return model.Filter{
			Kind:      rapid.SampledFrom(append([]model.Kind{""}, kinds...)).Draw(t, "kind"),
			Source:    rapid.SampledFrom(append([]string{""}, sources...)).Draw(t, "source"),
			Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
			Prefix:    rapid.SampledFrom([]string{"", "a", "ab"}).Draw(t, "prefix"),
		}
	})
}

func anyStorm(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		watches := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) opening {
			return opening{anyFilter().Draw(t, "filter"), rapid.IntRange(0, 60).Draw(t, "after"), rapid.Bool().Draw(t, "lags")}
		}), 1, 5)
		storm{
			writers: rapid.SliceOfN(rapid.SliceOfN(anyMove(), 1, 30), 1, 4).Draw(rt, "writers"),
			watches: watches.Draw(rt, "watches"),
		}.run(t, rt, open(t))
	})
}

// markerOf names the record that marks the end of a storm for a watch with that
// filter. Every filter used here selects it.
func markerOf(f model.Filter) model.Ref {
	r := ref(kindNote, "files", "default", "ab, the last")
	if f.Kind != "" {
		r.Kind = f.Kind
	}
	if f.Source != "" {
		r.Source = f.Source
	}
	if f.Namespace != "" {
		r.Namespace = f.Namespace
	}
	if !f.Matches(r) {
		r.Name = f.Prefix
	}
	return r
}

// markers returns the writes that end a storm for every filter.
func markers() (out []model.Write) {
	for _, kind := range kinds {
		for _, source := range sources {
			out = append(out, model.Write{Record: saying(ref(kind, source, "default", "ab, the last"), 1)})
		}
	}
	return out
}

package mirror_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// object is an object of a registry: valid, invalid, or of a kind that is not read.
type object struct {
	text    string
	invalid bool
	ignored bool
}

// stored is the store of a supervisor that holds no drop.
type stored map[string]struct{ place, text string }

func (s stored) replace(l model.Listing) {
	stays := map[string]bool{}
	for _, o := range l.Objects {
		s[o.Record.Name] = struct{ place, text string }{o.Record.Place, o.Record.Spec.(model.Scope).Content}
		stays[o.Record.Name] = true
	}
	for _, r := range l.Rejected {
		stays[r.Ref.Name] = true
	}
	for name, is := range s {
		if slices.Contains(l.Places, is.place) && !stays[name] {
			delete(s, name)
		}
	}
	for _, r := range l.Rejected {
		if is, has := s[r.Ref.Name]; has {
			s[r.Ref.Name] = struct{ place, text string }{r.Place, is.text}
		}
	}
}

func (s stored) change(c model.Change) {
	for _, ref := range c.Deletes {
		delete(s, ref.Name)
	}
	for _, o := range c.Upserts {
		s[o.Record.Name] = struct{ place, text string }{o.Record.Place, o.Record.Spec.(model.Scope).Content}
	}
}

// registry is the slow and obvious model: all objects, by part and key.
type registry map[string]map[string]object

// current returns the object of the first part that has a key.
func (r registry) current(parts []string, key string) (o object, in string) {
	for _, p := range parts {
		if o, has := r[p][key]; has {
			return o, p
		}
	}
	return o, ""
}

// expect updates the expected texts by a look at every key.
func (r registry) expect(want map[string]string, parts, keys []string) {
	for _, key := range keys {
		switch o, in := r.current(parts, key); {
		case in == "" || o.ignored:
			delete(want, key)
		case !o.invalid:
			want[key] = o.text
		}
	}
}

func entryOf(m *mirror.Mirror[string, object], key string) mirror.Entry {
	e := mirror.Entry{Ref: model.Ref{Kind: model.KindScope, Key: model.Key{Name: key}}}
	for p := range m.Parts() {
		e.Places = append(e.Places, p.Name+" "+key)
	}
	switch o, in := m.Get(key); {
	case in == nil:
	case o.ignored:
		e.Ignored = "Ignored"
	case o.invalid:
		e.Rejected = &model.Rejection{Ref: e.Ref, Place: in.Name + " " + key}
	default:
		e.Object = &model.Object{Record: model.Record{Ref: e.Ref, Place: in.Name + " " + key, Spec: model.Scope{Content: o.text}}}
	}
	return e
}

func entries(m *mirror.Mirror[string, object], keys []string) func(func(mirror.Entry) bool) {
	return func(yield func(mirror.Entry) bool) {
		for _, key := range keys {
			if !yield(entryOf(m, key)) {
				return
			}
		}
	}
}

// Whatever a registry does with its parts, and however each step is passed on, the store
// ends with the objects of the first part that has them. A step costs the keys that the
// registry named since the last one.
func TestStepsLeadToTheRegistry(t *testing.T) {
	t.Parallel()
	parts, keys := []string{"a", "b", "c"}, []string{"1", "2", "3", "4", "5"}
	rapid.Check(t, func(t *rapid.T) {
		m := mirror.New[string, object](parts...)
		is, store, want := registry{"a": {}, "b": {}, "c": {}}, stored{}, map[string]string{}
		named := map[string]bool{}
		key, part := rapid.SampledFrom(keys), rapid.SampledFrom(parts)
		draw := rapid.Custom(func(t *rapid.T) object {
			return object{
				text:    fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "text")),
				invalid: rapid.IntRange(0, 4).Draw(t, "invalid") == 0, ignored: rapid.IntRange(0, 5).Draw(t, "ignored") == 0,
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				p, k, o := part.Draw(t, "part"), key.Draw(t, "key"), draw.Draw(t, "object")
				m.Part(p).Put(k, o)
				is[p][k], named[k] = o, true
			},
			"delete": func(t *rapid.T) {
				p, k := part.Draw(t, "part"), key.Draw(t, "key")
				m.Part(p).Delete(k)
				delete(is[p], k)
				named[k] = true
			},
			"read": func(t *rapid.T) {
				p := part.Draw(t, "part")
				r, next := m.Part(p).Read(), maps.Clone(is[p])
				got := map[string]bool{}
				for _, k := range rapid.SliceOfN(key, 0, 6).Draw(t, "keys") {
					got[k], named[k] = true, true
					if old, has := m.Part(p).Get(k); has && rapid.Bool().Draw(t, "same") {
						r.Same(k)
						next[k] = old
						continue
					}
					next[k] = draw.Draw(t, "object")
					r.Put(k, next[k])
				}
				for _, k := range keys {
					if r.Has(k) != got[k] {
						t.Fatalf("the reading has %s: %t", k, r.Has(k))
					}
				}
				if rapid.Bool().Draw(t, "complete") {
					r.Complete()
					maps.DeleteFunc(next, func(k string, _ object) bool { return !got[k] })
					for k := range is[p] {
						named[k] = true
					}
				}
				for _, k := range rapid.SliceOfN(key, 0, 2).Draw(t, "removed") {
					if r.Delete(k); !got[k] {
						delete(next, k)
						named[k] = true
					}
				}
				if before := m.Part(p).Len(); before != len(is[p]) {
					t.Fatalf("a comparison changes the mirror: %d objects", before)
				}
				if rapid.IntRange(0, 3).Draw(t, "NACKed") == 0 {
					return
				}
				if r.Apply(); r.IsEmpty() && !maps.Equal(is[p], next) {
					t.Fatal("the reading is empty and differs")
				}
				is[p] = next
			},
			"list everything": func(t *rapid.T) {
				m.Take()
				l := mirror.ListingOf(entries(m, slices.Sorted(m.Keys())))
				for _, k := range keys {
					for _, p := range parts {
						l.Places = append(l.Places, p+" "+k)
					}
				}
				store.replace(l)
				is.expect(want, parts, keys)
				clear(named)
			},
			"pass on": func(t *rapid.T) {
				taken := m.Take()
				slices.Sort(taken)
				for _, k := range taken {
					if !named[k] {
						t.Fatalf("the registry did not name %s", k)
					}
				}
				if rapid.Bool().Draw(t, "as a listing") {
					store.replace(mirror.ListingOf(entries(m, taken)))
				} else if c := mirror.ChangeOf(entries(m, taken)); !mirror.IsEmpty(c) {
					store.change(c)
				}
				is.expect(want, parts, keys)
				clear(named)
				if again := m.Take(); len(again) > 0 {
					t.Fatalf("%v are passed on twice", again)
				}
			},
			"": func(t *rapid.T) {
				all := map[string]bool{}
				for _, p := range parts {
					if got := maps.Collect(m.Part(p).All()); !maps.Equal(got, is[p]) {
						t.Fatalf("part %s has %v, the registry %v", p, got, is[p])
					}
					for k := range is[p] {
						all[k] = true
					}
				}
				if got := slices.Sorted(m.Keys()); !slices.Equal(got, slices.Sorted(maps.Keys(all))) {
					t.Fatalf("the keys are %v, the registry has %v", got, all)
				}
				got := map[string]string{}
				for k, r := range store {
					got[k] = r.text
				}
				if len(named) == 0 && !maps.Equal(got, want) {
					t.Fatalf("stored is %v, the registry has %v", got, want)
				}
			},
		})
	})
}

// An object that an earlier part has, too, is not passed on.
func TestShadowedObjectIsNotTouched(t *testing.T) {
	t.Parallel()
	m := mirror.New[string, object]("a", "b")
	m.Part("a").Put("1", object{text: "x"})
	m.Take()
	m.Part("b").Put("1", object{text: "y"})
	if taken := m.Take(); len(taken) > 0 {
		t.Errorf("%v is touched", taken)
	}
}

// A dropped part and a forgotten object are not held, and not passed on as gone.
func TestDroppedObjectsAreNotGone(t *testing.T) {
	t.Parallel()
	m := mirror.New[string, object]("a", "b")
	m.Part("a").Put("1", object{text: "x"})
	m.Part("b").Put("2", object{text: "y"})
	m.Take()
	m.Part("a").Forget("1")
	m.Drop("b")
	if held := slices.Collect(m.Keys()); len(held) > 0 {
		t.Errorf("%v are held", held)
	}
	if taken := m.Take(); len(taken) > 0 {
		t.Errorf("%v are touched", taken)
	}
}

// Records of parts that cannot be read are rejected one by one. Their owned records are
// not.
func TestKeptRecordsAreRejected(t *testing.T) {
	t.Parallel()
	service := model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Name: "1"}}
	records := []model.Record{{Ref: service, Place: "a 1"}, {Ref: model.Ref{Key: model.Key{Source: "s", Name: "1/2"}}, Owner: service}, {Ref: model.Ref{Key: model.Key{Name: "3"}}, Place: "b 3"}}
	var l model.Listing
	mirror.Keep(&l, slices.Values(records), func(r model.Record) (model.Rejection, bool) {
		return model.Rejection{Reason: "unread"}, r.Place != "b 3"
	})
	own := service
	own.Source = ""
	if want := (model.Rejection{Ref: own, Place: "a 1", Reason: "unread"}); len(l.Rejected) != 1 || l.Rejected[0] != want {
		t.Errorf("rejected are %v", l.Rejected)
	}
}

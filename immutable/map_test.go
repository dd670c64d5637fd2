package immutable_test

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/immutable"
)

// Whatever is edited, every map made along the way keeps what it held.
func TestEarlierMapsNeverChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			got  immutable.Map[int, int]
			want map[int]int
		}
		versions := []version{{immutable.New[int, int](cmp.Compare[int]), map[int]int{}}}
		for range rapid.IntRange(1, 30).Draw(t, "edits") {
			from := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "from")]
			editor, want := from.got.Edit(), maps.Clone(from.want)
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				key := rapid.IntRange(0, 300).Draw(t, "key")
				if rapid.Bool().Draw(t, "delete") {
					_, had := want[key]
					if editor.Delete(key) != had {
						t.Fatalf("delete of %d disagrees about its presence", key)
					}
					delete(want, key)
				} else {
					value := rapid.Int().Draw(t, "value")
					editor.Set(key, value)
					want[key] = value
				}
			}
			versions = append(versions, version{editor.Map(), want})
		}
		for _, v := range versions {
			if got := maps.Collect(v.got.All()); !maps.Equal(got, v.want) || v.got.Len() != len(v.want) {
				t.Fatalf("map holds %v, want %v", got, v.want)
			}
			keys := slices.Sorted(maps.Keys(v.want))
			pivot := rapid.IntRange(0, 300).Draw(t, "pivot")
			at, _ := slices.BinarySearch(keys, pivot)
			var from []int
			for k := range v.got.From(pivot) {
				from = append(from, k)
			}
			if !slices.Equal(from, keys[at:]) {
				t.Fatalf("from %d: %v, want %v", pivot, from, keys[at:])
			}
			key, _, ok := v.got.Before(pivot)
			if ok != (at > 0) || ok && key != keys[at-1] {
				t.Fatalf("before %d: %v %v, want %v", pivot, key, ok, keys[:at])
			}
		}
	})
}

// Readers and editors of one map need no lock; the race detector is the judge.
func TestOneMapManyGoroutines(t *testing.T) {
	t.Parallel()
	base := immutable.New[int, int](cmp.Compare[int]).Edit()
	for i := range 1000 {
		base.Set(i, i)
	}
	shared := base.Map()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			editor := shared.Edit()
			for k := range 500 {
				editor.Set(k, -i)
			}
			if v, _ := shared.Get(7); v != 7 {
				t.Errorf("the shared map changed: %d", v)
			}
			if v, _ := editor.Map().Get(7); v != -i {
				t.Errorf("editor %d lost its change: %d", i, v)
			}
		})
	}
	group.Wait()
}

func BenchmarkSetOneOf20000(b *testing.B) {
	editor := immutable.New[int, int](cmp.Compare[int]).Edit()
	for i := range 20000 {
		editor.Set(i, i)
	}
	m := editor.Map()
	b.ReportAllocs()
	for b.Loop() {
		next := m.Edit()
		next.Set(9999, 1)
		m = next.Map()
	}
}

package storetest

import (
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// resumed compares the batches of a reader that left and came back with the batches of
// a reader that stayed.
func resumed(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 1), saying(web1, 1))
	for name, f := range map[string]model.Filter{"all": {}, "endpoints": {Kind: model.KindEndpoint}} {
		stayed, left := watch(t, s, f).prime(), snapshot(t, s, f)
		put(t, s, saying(web1, 2), saying(web2, 1))
		drop(t, s, web1, web)
		put(t, s, saying(web1, 3))
		drop(t, s, web2)
		put(t, s, saying(web, 1), saying(note, 1))
		end := put(t, s, saying(web2, 4))
		back, stop := resume(t, t, s, f, left)
		for stayed.revision < end {
			want, got := stayed.read(), back.read()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: given %+v on coming back, want %+v", name, got, want)
			}
		}
		mustEqual(t, name+": what is held in the end", back.held, stayed.held)
		stop()
		if back.resets > 0 {
			t.Errorf("%s: reset %d times, want none", name, back.resets)
		}
		drop(t, s, note)
	}
	upToDate(t, s)
}

// upToDate resumes without missed commits, at the current and at a future moment.
func upToDate(t *testing.T, s Store) {
	t.Helper()
	now, soon := snapshot(t, s, model.Filter{}), snapshot(t, s, model.Filter{})
	soon.revision++
	waiting, stop := resume(t, t, s, model.Filter{}, soon)
	defer stop()
	following, stop := resume(t, t, s, model.Filter{}, now)
	defer stop()
	first, second := put(t, s, saying(note, 101)), put(t, s, saying(web2, 102))
	if following.read(); following.revision != first {
		t.Errorf("a reader that missed nothing is notified of revision %d, want %d", following.revision, first)
	}
	if b, err, ok := waiting.next(); err != nil || !ok || len(b.Events) != 1 {
		t.Errorf("a reader from the future is given %+v, error %v", b, err)
	} else if r, _ := revisionOf(b.Events[0]); r != after(soon.revision, first, second) {
		t.Errorf("a reader that holds revision %d is notified of %d of %d and %d", soon.revision, r, first, second)
	}
}

// after returns the first of some revisions that a reader does not hold.
func after(held uint64, revisions ...uint64) uint64 {
	return revisions[slices.IndexFunc(revisions, func(r uint64) bool { return r > held })]
}

// resumedTooLate comes back when the history has moved on, or is another's.
func resumedTooLate(t *testing.T, s Store) {
	t.Helper()
	put(t, s, saying(web, 0))
	late, strange := snapshot(t, s, model.Filter{}), snapshot(t, s, model.Filter{})
	strange.epoch++
	put(t, s, saying(web1, 0))
	drop(t, s, web1)
	for i := range History {
		put(t, s, saying(web, i+1))
	}
	for what, v := range map[string]*view{"too late": late, "from another epoch": strange} {
		back, stop := resume(t, t, s, model.Filter{}, v)
		b := back.read()
		if reset, ok := b.Events[0].(model.Reset); !ok || reset.Reason == "" {
			t.Errorf("a reader that comes %s is given %+v, want a reset with its reason", what, b)
		}
		back.prime()
		mustEqual(t, "what it holds then", back.held, listed(t, s, model.Filter{}))
		back.readTo(put(t, s, saying(note, len(what))))
		stop()
	}
}

// resumedDuringWrites leaves and comes back while a writer is at work. The view
// rejects a commit delivered twice, and one left out.
func resumedDuringWrites(t *testing.T, s Store) {
	t.Helper()
	const commits = 2000
	put(t, s, saying(web1, 0))
	v := snapshot(t, s, model.Filter{})
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for i := range commits {
			both := model.Commit{Writes: []model.Write{based(s, saying(web1, i+1)), based(s, saying(nth(i%7), i))}}
			if i%5 == 4 {
				both.Writes[1].Delete = true
			}
			if _, err := s.Commit(t.Context(), both); err != nil {
				t.Errorf("commit: %v", err)
				return
			}
		}
	})
	for v.held[web1].Generation <= commits {
		back, stop := resume(t, t, s, model.Filter{}, v)
		for range 3 {
			if back.read(); back.primed && back.held[web1].Generation > commits {
				break
			}
		}
		back.prime()
		stop()
	}
	mustEqual(t, "what is held in the end", v.held, listed(t, s, model.Filter{}))
}

// resumedAnyway lets readers of random filters leave and come back at random
// moments of random histories.
func resumedAnyway(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		s, f := open(t), anyFilter().Draw(rt, "filter")
		left := snapshot(t, s, f)
		for i, m := range rapid.SliceOfN(anyMove(), 1, 25).Draw(rt, "moves") {
			writes, _ := m.writes(s, i)
			if _, err := s.Commit(t.Context(), model.Commit{Writes: writes}); err != nil && !isConflict(err) {
				rt.Fatalf("commit: %v", err)
			}
			if rapid.IntRange(0, 3).Draw(rt, "return") == 0 {
				comeBack(t, rt, s, f, left)
			}
		}
		comeBack(t, rt, s, f, left)
	})
}

// comeBack resumes, reads all there is and leaves again.
func comeBack(t *testing.T, on failer, s Store, f model.Filter, v *view) {
	t.Helper()
	r, stop := resume(t, on, s, f, v)
	defer stop()
	last := based(s, saying(markerOf(f), int(v.revision)+1000))
	revision, err := s.Commit(t.Context(), model.Commit{Writes: []model.Write{last}})
	if err != nil {
		on.Fatalf("commit: %v", err)
	}
	r.readTo(revision)
	mustEqual(on, "what is held on coming back", v.held, listed(on, s, f))
}

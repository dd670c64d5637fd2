package watch_test

import (
	"fmt"
	"slices"
	"testing"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/watch"
)

// commit returns the names of the next commit, and the number of its messages.
func (w *reading) commit() (names []string, messages int) {
	w.Helper()
	for {
		names = append(names, w.next().GetUpsert().GetRecord().GetRef().GetName())
		if len(w.pending) > 0 {
			continue
		}
		if messages++; !w.partial {
			return names, messages
		}
	}
}

// placed returns a service at the n-th place of its registry.
func placed(source, name string, n int) model.Record {
	rec := service(source, name)
	rec.Place = fmt.Sprintf("%d.yaml", n)
	return rec
}

// Readers share the messages of a commit, however many it has, but each is sent the records that
// it asked for.
func TestEachReaderIsSentItsPartOfACommit(t *testing.T) {
	t.Parallel()
	for size, messages := range map[int]int{1: 3, 64 << 10: 1} {
		r := newRig(t, setup{sources: []string{"east", "west"}, limits: watch.Limits{MessageBytes: size}})
		all, again := r.watch(&api.WatchListRequest{}), r.watch(&api.WatchListRequest{})
		east := r.watch(&api.WatchListRequest{Filter: &api.Filter{Source: "east"}})
		prefix := r.watch(&api.WatchListRequest{Filter: &api.Filter{NamePrefix: "b"}})
		for _, w := range []*reading{all, again, east, prefix} {
			w.end()
		}
		for n := range 2 {
			r.commit(placed("east", "a", n), placed("west", "b", n), placed("east", "c", n))
			for _, w := range []*reading{all, again} {
				if names, n := w.commit(); !slices.Equal(names, []string{"a", "b", "c"}) || n != messages {
					t.Errorf("%d bytes: a reader of everything is sent %v in %d messages", size, names, n)
				}
			}
			if names, _ := east.commit(); !slices.Equal(names, []string{"a", "c"}) {
				t.Errorf("%d bytes: a reader of a source is sent %v", size, names)
			}
			if names, _ := prefix.commit(); !slices.Equal(names, []string{"b"}) {
				t.Errorf("%d bytes: a reader of a prefix is sent %v", size, names)
			}
		}
	}
}

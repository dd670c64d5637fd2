package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// read reads n batches and says what is in each; between them it calls then
// with the number read so far.
func read(t *testing.T, m *store.Memory, n int, then func(read int)) (out []string) {
	t.Helper()
	for b, err := range m.Watch(t.Context(), model.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, contents(b))
		if len(out) == n {
			break
		}
		then(len(out))
	}
	return out
}

func contents(b model.Batch) string {
	counts := map[string]int{}
	for _, event := range b.Events {
		counts[strings.TrimPrefix(fmt.Sprintf("%T", event), "model.")]++
	}
	return strings.TrimPrefix(fmt.Sprint(counts), "map")
}

// A watch is notified of a commit when it is made, and not before; meanwhile
// nothing runs. Its times are those of the registry's change and of the commit.
func TestAWatchWaitsForTheNextCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory(store.Config{})
		var got []model.Batch
		var ended error
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for b, err := range m.Watch(ctx, model.Filter{}) {
				if got = append(got, b); err != nil {
					ended = err
				}
			}
		}()
		synctest.Wait()
		if len(got) != 1 {
			t.Fatalf("an empty store sent %d batches, want EndOfSnapshot alone", len(got))
		}
		observed := time.Now()
		<-time.After(time.Minute) // of the bubble's clock
		mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(1)}}, Observed: observed})
		synctest.Wait()
		if len(got) != 2 || !got[1].Observed.Equal(observed) || !got[1].Committed.Equal(time.Now()) {
			t.Errorf("given %+v, want one commit observed a minute ago", got[1:])
		}
		cancel()
		synctest.Wait()
		if len(got) != 3 || len(got[2].Events) != 0 || !errors.Is(ended, context.Canceled) {
			t.Errorf("the end is %+v, error %v; want an error alone", got[2:], ended)
		}
	})
}

func TestASnapshotComesInChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		records int
		want    []int
	}{
		{0, []int{1}},
		{1000, []int{1001}},
		{1001, []int{1000, 2}},
		{2500, []int{1000, 1000, 501}},
	} {
		m := store.NewMemory(store.Config{})
		mustCommit(t, m, endpoints(c.records))
		var got []int
		for b := range m.Watch(t.Context(), model.Filter{}) {
			got = append(got, len(b.Events))
			if _, ok := b.Events[len(b.Events)-1].(model.EndOfSnapshot); ok {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a snapshot of %d records comes as %v events, want %v", c.records, got, c.want)
		}
	}
}

// A commit that fits the history is given as one; a larger one resets even
// those who keep up, and those who come later do not notice.
func TestACommitLargerThanTheHistoryResets(t *testing.T) {
	t.Parallel()
	m := store.NewMemory(store.Config{History: 10})
	got := read(t, m, 6, func(read int) {
		switch read {
		case 1:
			mustCommit(t, m, endpoints(10))
		case 2:
			mustCommit(t, m, model.Commit{Writes: rename(endpoints(11))})
		case 4:
			mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(99)}}})
		case 5:
			mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(98)}}})
		}
	})
	want := []string{"[EndOfSnapshot:1]", "[Upsert:10]", "[Reset:1]", "[EndOfSnapshot:1 Upsert:21]", "[Upsert:1]", "[Upsert:1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

// rename makes other records of those of a commit.
func rename(c model.Commit) []model.Write {
	for i := range c.Writes {
		c.Writes[i].Record.Name += "-other"
	}
	return c.Writes
}

// The history is counted in events: a reader may lag by that many and no more.
func TestAReaderMayLagByTheHistory(t *testing.T) {
	t.Parallel()
	for lag, want := range map[int]string{10: "[Upsert:1]", 11: "[Reset:1]"} {
		m := store.NewMemory(store.Config{History: 10})
		got := read(t, m, 2, func(int) {
			for i := range lag {
				mustCommit(t, m, model.Commit{Writes: []model.Write{{Record: endpoint(i)}}})
			}
		})
		if got[1] != want {
			t.Errorf("%d events behind, a reader is given %s, want %s", lag, got[1], want)
		}
	}
}

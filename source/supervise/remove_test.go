package supervise_test

import (
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

func storeWith(t *testing.T, sources ...string) *store.Memory {
	t.Helper()
	m := store.NewMemory(store.Config{})
	var c model.Commit
	for _, name := range sources {
		for _, record := range []string{"a", "b"} {
			c.Writes = append(c.Writes, model.Write{Record: model.Record{
				Ref: model.Ref{Kind: "Note", Key: model.Key{Source: name, Name: record}}, Spec: model.Opaque{Content: record},
			}})
		}
	}
	if _, err := m.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return m
}

func count(s supervise.Lister, name string) int {
	return len(slices.Collect(s.List(model.Filter{Source: name})))
}

func TestRemoveDeletesAllOfOneSource(t *testing.T) {
	t.Parallel()
	s := storeWith(t, "old", "kept")
	if err := supervise.Remove(t.Context(), s, "old"); err != nil {
		t.Fatal(err)
	}
	if old, kept := count(s, "old"), count(s, "kept"); old != 0 || kept != 2 {
		t.Errorf("%d and %d records are left, want 0 and 2", old, kept)
	}
}

func TestSourcesWithoutConfigurationAreLeftOver(t *testing.T) {
	t.Parallel()
	s := storeWith(t, "old", "kept")
	if got := supervise.Leftover(s, []string{"kept", "new"}); !slices.Equal(got, []string{"old"}) {
		t.Errorf("left over are %q", got)
	}
}

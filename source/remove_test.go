package source_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// shared are the claims of processes that share a store. Each process has its
// own [processClaims].
type shared struct {
	mu     sync.Mutex
	holder map[string]string
	lose   map[string]context.CancelCauseFunc
}

type processClaims struct {
	*shared
	process string
}

func (c processClaims) Claim(ctx context.Context, name string) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder := c.holder[name]; holder != "" && holder != c.process {
		return nil, nil, &source.ClaimedError{Source: name, Holder: holder}
	}
	claimed, lose := context.WithCancelCause(ctx)
	c.holder[name], c.lose[name] = c.process, lose
	return claimed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		lose(nil)
		delete(c.holder, name)
	}, nil
}

var errClaimLost = errors.New("the claim was lost")

// losing is a store whose reader loses the claim of a source while it lists.
type losing struct {
	*store.Memory
	claims *shared
}

func (l losing) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	l.claims.lose["old"](errClaimLost)
	return l.Memory.Commit(ctx, c)
}

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

func count(s source.Lister, name string) int {
	return len(slices.Collect(s.List(model.Filter{Source: name})))
}

// A process whose configuration has lost a source deletes nothing as long as
// another has it, and everything when that one has let go of it too.
func TestOnlyTheHolderOfTheClaimDeletes(t *testing.T) {
	t.Parallel()
	s := storeWith(t, "old", "kept")
	claims := &shared{holder: map[string]string{}, lose: map[string]context.CancelCauseFunc{}}
	here, there := processClaims{claims, "here"}, processClaims{claims, "there"}
	_, release, err := there.Claim(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	var claimed *source.ClaimedError
	if err := source.Remove(t.Context(), s, here, "old"); !errors.As(err, &claimed) || claimed.Holder != "there" {
		t.Errorf("error %v, want one that names who has the source", err)
	}
	if got := count(s, "old"); got != 2 {
		t.Fatalf("%d records are left of a source that another process has, want 2", got)
	}
	release()
	if err := source.Remove(t.Context(), s, here, "old"); err != nil {
		t.Fatal(err)
	}
	if old, kept := count(s, "old"), count(s, "kept"); old != 0 || kept != 2 {
		t.Errorf("%d and %d records are left, want 0 and 2", old, kept)
	}
	if _, release, err = there.Claim(t.Context(), "old"); err != nil {
		t.Fatalf("the claim was not given back: %v", err)
	}
	release()
}

// A process that loses the claim between looking and deleting deletes nothing.
func TestALostClaimDeletesNothing(t *testing.T) {
	t.Parallel()
	claims := &shared{holder: map[string]string{}, lose: map[string]context.CancelCauseFunc{}}
	s := losing{storeWith(t, "old"), claims}
	if err := source.Remove(t.Context(), s, processClaims{claims, "here"}, "old"); !errors.Is(err, errClaimLost) {
		t.Errorf("error %v, want the reason why the claim was lost", err)
	}
	if got := count(s, "old"); got != 2 {
		t.Errorf("%d records are left, want 2", got)
	}
}

func TestSourcesWithoutConfigurationAreLeftOver(t *testing.T) {
	t.Parallel()
	s := storeWith(t, "old", "kept")
	if got := source.Leftover(s, []string{"kept", "new"}); !slices.Equal(got, []string{"old"}) {
		t.Errorf("left over are %q", got)
	}
}

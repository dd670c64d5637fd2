package source

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Claims say who may write for a listed source. Where several processes share
// a store, one at a time has the claim of a source, and reads it.
type Claims interface {
	// Claim makes this process the one that writes for a source until release is
	// called or claimed ends, which is when the claim was lost. It fails with a
	// [*ClaimedError] if another process has the source.
	Claim(ctx context.Context, source string) (claimed context.Context, release func(), err error)
}

// ClaimedError says that another process has a source.
type ClaimedError struct{ Source, Holder string }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("source %s is read by %s: its records are left to that process", e.Source, e.Holder)
}

// SingleProcess are the claims of a process that has the store to itself: in its own
// memory, or by the lock on the folder that the store is kept in.
type SingleProcess struct{}

var _ Claims = SingleProcess{}

// Claim always succeeds.
func (SingleProcess) Claim(ctx context.Context, _ string) (claimed context.Context, release func(), err error) {
	return ctx, func() {}, nil
}

// Leftover names the sources that have records and that this process neither
// has configured nor may forget: the ones to [Remove].
func Leftover(stored Lister, configured []string) []string {
	names := map[string]bool{}
	for r := range stored.List(model.Filter{}) {
		names[r.Source] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return slices.Contains(configured, name)
	})
	return slices.Sorted(maps.Keys(names))
}

// Remove deletes everything a source has stored, its mark included, in one
// commit, by the one rule of who may do so:
//
//   - The source is not in the configuration of the process that deletes. The
//     caller sees to that, and that the source's supervisor has returned, and
//     that what an operator put in its place has been listed.
//   - The process has the claim of the source, from before it looks at the
//     records until they are deleted. A process that still has the source
//     configured has the claim, or it waits for it and lists the source anew
//     once it gets it. So records are deleted by nobody while another process
//     reads the source, and the last process to let go of it deletes them.
//
// It fails with a [*ClaimedError] while another process has the source. Trying
// again later is the way on.
func Remove(ctx context.Context, store Store, claims Claims, source string) error {
	ctx, release, err := claims.Claim(ctx, source)
	if err != nil {
		return fmt.Errorf("remove source %s: %w", source, err)
	}
	defer release()
	for range commitTries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var d difference
		for rec := range store.List(model.Filter{Source: source}) {
			d.remove(rec, true)
		}
		if len(d.Deletes) == 0 {
			return nil
		}
		if _, err = store.Commit(ctx, model.Commit{Writes: d.Deletes}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove source %s: %w", source, err)
}

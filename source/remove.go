package source

import (
	"context"
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// Remove deletes everything a source has stored, its mark included, in one
// commit. It is for a source that an operator has taken out of the
// configuration, and comes after its supervisor has returned.
func Remove(ctx context.Context, store Store, source string) error {
	var err error
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

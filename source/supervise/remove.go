package supervise

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Leftover names the sources that have records and are not configured: the sources to
// [Remove].
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

// Remove deletes everything a source has stored, its mark included, in one commit.
// The caller makes sure that the source is not configured, its supervisor has
// returned, and its successors have been listed.
func Remove(ctx context.Context, store Store, source string) (err error) {
	for range commitTries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var writes []model.Write
		for rec := range store.List(model.Filter{Source: source}) {
			writes = append(writes, reading.Deletion(rec))
		}
		if len(writes) == 0 {
			return nil
		}
		if _, err = store.Commit(ctx, model.Commit{Writes: writes}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove source %s: %w", source, err)
}

// Package sourcetest is what sources and the stores they are kept in must pass,
// from outside of package source.
//
// [RunListed] is of sources that a registry lists: whatever the registry holds, however
// it fails, and whatever goes wrong with the source, its process and the store, each
// commit keeps the laws, and at rest the store has what the registry has. It steers the
// registry through [Registry], so any source can run it.
//
// [RunBaseline] is of what others have of a listed source: whenever a baseline is
// handed over, by whichever process, and whether it ever is, nothing of it is
// reported deletable before it was judged, and nothing that is held.
//
// Both run on a store in memory. Histories are drawn by rapid and run on the clock
// of testing/synctest, unless a registry needs that of the machine.
package sourcetest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Store has the methods of a store that the histories use. [store.Memory] documents
// each of them.
type Store interface {
	source.Store
	Get(ref model.Ref) (model.Record, bool)
	At() model.At
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// violation is thrown where a rule is broken.
type violation struct{ text string }

func (v *violation) Error() string { return v.text }

// diary notes what happened, for people.
type diary struct{ lines []string }

func (d *diary) log(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) violated(format string, args ...any) {
	panic(&violation{fmt.Sprintf(format, args...) + "; what happened:\n\t" + strings.Join(d.lines, "\n\t")})
}

// check runs histories. What is thrown inside of the bubble is taken out of it, as
// rapid wants to see it.
func check(t *testing.T, history func(ctx context.Context, rt *rapid.T)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		if err := try(t, rt, history); err != nil {
			rt.Fatal(err)
		}
	})
}

func try(t *testing.T, rt *rapid.T, history func(ctx context.Context, rt *rapid.T)) error {
	t.Helper()
	var thrown any
	synctest.Test(t, func(*testing.T) {
		ctx, end := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer end()
		defer func() { thrown = recover() }()
		history(ctx, rt)
	})
	if v, ok := thrown.(*violation); ok {
		return v
	}
	if thrown != nil {
		panic(thrown)
	}
	return nil
}

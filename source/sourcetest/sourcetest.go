// Package sourcetest checks sources, and stores under them, from outside of package
// source.
//
// [RunListed] checks sources that list a registry. The registry may hold and change
// anything and fail in its ways; the source, its process and the store may fail, too.
// Each commit keeps the laws, and at rest the store matches the registry. The suite
// steers the registry through [Registry], so any source can run it.
//
// [RunBaseline] checks baselines that other systems have of a listed source. Any
// process may hand a baseline over at any time, or never. No part of it is reported
// deletable before it was judged, nor while it is held.
//
// Both run on a store in memory. Histories are drawn by rapid and run on the clock of
// testing/synctest, unless a registry needs the machine's clock.
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
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// Store has the methods of a store that the histories use. [store.Memory] documents
// each of them.
type Store interface {
	supervise.Store
	Get(ref model.Ref) (model.Record, bool)
	At() model.At
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// violation is thrown if a rule is broken.
type violation struct{ text string }

func (v *violation) Error() string { return v.text }

// diary notes events, for people.
type diary struct{ lines []string }

func (d *diary) log(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) violated(format string, args ...any) {
	panic(&violation{fmt.Sprintf(format, args...) + "; what happened:\n\t" + strings.Join(d.lines, "\n\t")})
}

// check runs histories. A violation thrown inside of the bubble is passed out of it,
// as rapid requires.
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

package sourcetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

func isConflict(err error) bool {
	var c *store.ConflictError
	return errors.As(err, &c)
}

func inMemory(context.Context) Shared { return SingleProcess{store.NewMemory(store.Config{})} }

func TestWrittenInMemory(t *testing.T) { RunWritten(t, inMemory, isConflict) }

func TestWrittenFedFromOutside(t *testing.T) { RunWritten(t, fedFromOutside, isConflict) }

func fedFromOutside(context.Context) Shared { return NewOutside() }

// Of those who prime a source at the same time, no replica of one shows yet that
// another has been the first.
func TestPrimedByTwoAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outside := NewOutside()
		ctx, end := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer end()
		var both sync.WaitGroup
		for range 2 {
			s := outside.Process(ctx)
			both.Go(func() {
				w, err := source.NewWritten(written, s, source.WrittenConfig{})
				if err == nil {
					err = w.Prime(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	})
}

func supervise(name string, src source.Source, s source.Store) Supervised {
	return source.NewSupervisor(name, src, s, source.Config{})
}

func TestBaselineInMemory(t *testing.T) { RunBaseline(t, inMemory, supervise) }

func TestBaselineFedFromOutside(t *testing.T) { RunBaseline(t, fedFromOutside, supervise) }

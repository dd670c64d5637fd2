package sourcetest

import (
	"context"
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

func inMemory(context.Context) Shared { return SingleProcess{store.NewMemory(store.Config{})} }

func fedFromOutside(context.Context) Shared { return NewOutside() }

func supervise(name string, src source.Source, s source.Store) Supervised {
	return source.NewSupervisor(name, src, s, source.Config{})
}

func TestBaselineInMemory(t *testing.T) { RunBaseline(t, inMemory, supervise) }

func TestBaselineFedFromOutside(t *testing.T) { RunBaseline(t, fedFromOutside, supervise) }

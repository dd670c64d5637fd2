package sourcetest

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
)

func supervise(name string, src source.Source, s source.Store) Supervised {
	return source.NewSupervisor(name, src, s, source.Config{})
}

func TestBaselineInMemory(t *testing.T) { RunBaseline(t, supervise) }

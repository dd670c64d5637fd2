package sourcetest

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

func supervised(name string, src source.Source, s supervise.Store) Supervised {
	return supervise.New(name, src, s, supervise.Config{})
}

func TestBaselineInMemory(t *testing.T) { RunBaseline(t, supervised) }

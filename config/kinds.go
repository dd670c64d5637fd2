package config

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
)

// Kinds are the tables of what can be configured: a row makes a kind of registry
// or of output known.
type Kinds struct {
	Sources []source.Kind
	Outputs []output.Kind
}

// Known are the kinds that Isthmus has. One more is one more row.
func Known() Kinds {
	return Kinds{
		Sources: []source.Kind{
			file.Kind(),
			servicecenter.Kind(),
		},
		Outputs: []output.Kind{
			xds.OutputKind(xds.Translation{
				Kinds: xds.Kinds{Envoy: envoy.KindEnvoy, GRPC: envoy.KindGRPC},
				Types: envoy.Types, Step: envoy.Step, NotOffered: envoy.NotOffered, Unserved: envoy.Unserved,
			}),
			istio.OutputKind(),
		},
	}
}

func (k Kinds) source(name string) (source.Kind, bool) {
	i := slices.IndexFunc(k.Sources, func(k source.Kind) bool { return k.Name == name })
	if i < 0 {
		return source.Kind{}, false
	}
	return k.Sources[i], true
}

func (k Kinds) output(name string) (output.Kind, bool) {
	i := slices.IndexFunc(k.Outputs, func(k output.Kind) bool { return k.Name == name })
	if i < 0 {
		return output.Kind{}, false
	}
	return k.Outputs[i], true
}

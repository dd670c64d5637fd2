package config

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/envoy/conflict"
	"github.com/isthmus-mesh/isthmus/output/envoy/explain"
	envoynames "github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/output/watch"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	sourcexds "github.com/isthmus-mesh/isthmus/source/xds"
)

// Kinds has the tables of kinds that a configuration may contain.
type Kinds struct {
	Sources []source.Kind
	Outputs []output.Kind
}

// Known returns the kinds of Isthmus. A new kind of registry or output is a new row here.
func Known() Kinds {
	return Kinds{
		Sources: []source.Kind{
			file.Kind(),
			servicecenter.Kind(),
			kubernetes.Kind(),
			sourcemcp.Kind(),
			sourcexds.Kind(),
			azure.Kind(),
		},
		Outputs: []output.Kind{
			xds.OutputKind(xds.Translation{
				Kinds: xds.Kinds{
					Envoy: envoy.KindEnvoy, GRPC: envoy.KindGRPC, GRPCNode: envoy.KindGRPCNode, Extensions: []string{envoynames.DNSCluster},
					ControlPlane: resource.KindIstiod, Configuration: resource.KindMCP,
				},
				Settings: func() xds.Settings { return envoy.NewTranslator() }, Named: explain.Named, Notices: conflict.Notices,
				Authorities: output.ResourceName{Type: wire.SecretURL, Name: envoynames.Authorities},
				Configuration: xds.Configuration{
					Types: resource.OverXDS().Types, NotOffered: resource.NotOffered,
					Begin: func(self string) xds.Steps {
						return resource.NewTranslator(resource.OverXDS(), resource.Options{Wrapped: true, Self: self})
					},
				},
			}),
			mcp.OutputKind(mcp.Translation{
				Types: resource.Collections().Types,
				New: func(self string) mcp.Translator {
					return resource.NewTranslator(resource.Collections(), resource.Options{Self: self})
				},
				NotOffered: notOffered,
			}),
			istio.OutputKind(),
			watch.OutputKind(),
		},
	}
}

// notOffered adapts [resource.NotOffered]: the reason does not depend on the kind of client.
func notOffered(s *catalog.Service, _ string) string { return resource.NotOffered(s) }

func sourceKind(k source.Kind) string { return k.Name }

func outputKind(k output.Kind) string { return k.Name }

// names returns the names of the rows of a table.
func names[Row any](table []Row, name func(Row) string) (list []string) {
	for _, row := range table {
		list = append(list, name(row))
	}
	return list
}

// find returns the row with the wanted name.
func find[Row any](table []Row, name func(Row) string, wanted string) (row Row, known bool) {
	i := slices.IndexFunc(table, func(row Row) bool { return name(row) == wanted })
	if i < 0 {
		return row, false
	}
	return table[i], true
}

package resource

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Table lists the types of a protocol. Its rows are those of the producer.
type Table []Type

// Type is one row of a [Table].
type Type struct {
	Kind istio.Definition // without a name if nothing has this type
	Name string           // of the type in the protocol
	// Synthetic says that it is of ServiceEntries as MCP v1 has them of registries:
	// with the versions of their parts, and with the endpoints that are not ready.
	Synthetic bool
}

// meshConfig is what istiod asks for beside the kinds. It does not use the answer.
const meshConfig = "core/v1alpha1/MeshConfig"

// OverXDS are the types of MCP-over-xDS. A kind is there under every version that
// its group has had, so that a client may ask for several at a time.
func OverXDS() Table {
	t := Table{{Name: meshConfig}}
	for _, kind := range istio.Definitions() {
		if kind.URL() == "" {
			continue
		}
		t = append(t, Type{Kind: kind, Name: kind.URL()})
		for _, version := range kind.Versions() {
			if version != kind.Version {
				alias := kind
				alias.Version = version
				t = append(t, Type{Kind: kind, Name: alias.URL()})
			}
		}
	}
	return t
}

// Collections are the types of MCP v1.
func Collections() Table {
	var t Table
	for _, kind := range istio.Definitions() {
		if kind.Collection != "" {
			t = append(t, Type{Kind: kind, Name: kind.Collection})
		}
	}
	entries, _ := istio.ByCollection(mcp.Synthetic)
	return append(t, Type{Kind: entries, Name: mcp.Synthetic, Synthetic: true})
}

// Types says how each type is delivered. Debounce delays the changes of a type for
// the subscribers of a mode; nil delays none.
func (t Table) Types(debounce func(typeName string, m world.Mode) world.Debounce) []world.TypeSpec {
	specs := make([]world.TypeSpec, len(t))
	for i, row := range t {
		// Those who do not take increments replace all that they have by what comes.
		specs[i] = world.TypeSpec{Name: row.Name, Whole: true, Audience: everybody}
		if debounce != nil {
			specs[i].Debounce = [...]world.Debounce{debounce(row.Name, world.WholeState), debounce(row.Name, world.Delta)}
		}
	}
	return specs
}

// everybody is the audience: whoever may read configuration reads all of it.
func everybody(world.Client) []string { return []string{""} }

// content tells what the resources of a row are. Rows of equal content share them.
type content struct {
	kind      string
	synthetic bool
}

func (t Type) content() content { return content{t.Kind.Name, t.Synthetic} }

// of lists the rows that have some content.
func (t Table) of(c content) (rows []world.Row) {
	for i, row := range t {
		if row.content() == c {
			rows = append(rows, world.Row(i))
		}
	}
	return rows
}

// contents are those of all rows, each once.
func (t Table) contents() (list []content) {
	for _, row := range t {
		if c := row.content(); c.kind != "" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

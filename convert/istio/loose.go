package istio

import (
	"encoding/json"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// EntryOf returns what an API server has as the specification of a ServiceEntry,
// in the form in which a client for any kind of object decodes it. Nothing is
// judged: what does not fit is left out. It is never nil.
func EntryOf(spec any) *networking.ServiceEntry {
	entry := &networking.ServiceEntry{}
	node := nodeOfAny(spec)
	fill(&node, entry.ProtoReflect(), top("spec"), &problems{})
	return entry
}

// nodeOfAny is the node of a value that was decoded from JSON.
func nodeOfAny(v any) yamlpos.Node {
	switch v := v.(type) {
	case bool:
		return yamlpos.NewScalar(yamlpos.Bool, strconv.FormatBool(v))
	case string:
		return yamlpos.NewScalar(yamlpos.String, v)
	case int64:
		return yamlpos.NewScalar(yamlpos.Number, strconv.FormatInt(v, 10))
	case float64:
		return yamlpos.NewScalar(yamlpos.Number, strconv.FormatFloat(v, 'f', -1, 64))
	case json.Number:
		return yamlpos.NewScalar(yamlpos.Number, v.String())
	case []any:
		items := make([]yamlpos.Node, len(v))
		for i := range v {
			items[i] = nodeOfAny(v[i])
		}
		return yamlpos.NewList(items)
	case map[string]any:
		var out fields
		for name, entry := range v {
			out.put(name, nodeOfAny(entry))
		}
		return out.node()
	default:
		return yamlpos.Node{}
	}
}

package istio

import (
	"encoding/json"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// carried is the content of the record of an object that is carried unchanged.
type carried struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   carriedMetadata `json:"metadata"`
	Spec       any             `json:"spec"`
}

type carriedMetadata struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Labels      model.Labels `json:"labels,omitzero"`
	Annotations model.Labels `json:"annotations,omitzero"`
	Created     time.Time    `json:"creationTimestamp,omitzero"`
}

// contentOf returns the content of a valid object in JSON, in a form that depends on the
// content alone and not on the input's notation.
func contentOf(kind string, m meta, spec *yamlpos.Node) []byte {
	return mustJSON(carried{
		APIVersion: Group + "/" + Version,
		Kind:       kind,
		Metadata:   carriedMetadata{m.namespace, m.name, m.spec.Labels, m.spec.Annotations, m.spec.Created},
		Spec:       plain(spec),
	})
}

// mustJSON encodes the values of nodes, which always have a JSON form.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// plain returns the value of a node, with numbers in one notation and without null entries:
// null means absent.
func plain(n *yamlpos.Node) any {
	switch n.Kind() {
	case yamlpos.Null:
		return nil
	case yamlpos.Bool:
		return n.Text() == "true"
	case yamlpos.Number:
		if n, ok := whole(n.Text()); ok {
			return n
		}
		return json.Number(n.Text())
	case yamlpos.String:
		return n.Text()
	case yamlpos.List:
		out := make([]any, n.Len())
		for i, item := range n.Items() {
			out[i] = plain(item)
		}
		return out
	default:
		out := make(map[string]any, n.Len())
		for key, value := range n.Fields() {
			if present(value) {
				out[key.Name] = plain(value)
			}
		}
		return out
	}
}

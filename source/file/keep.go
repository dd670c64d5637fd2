package file

import (
	"encoding/json"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// kept is the content of the record of an object that is carried as it is.
type kept struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   keptMetadata `json:"metadata"`
	Spec       any          `json:"spec"`
}

type keptMetadata struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Labels      model.Labels `json:"labels,omitzero"`
	Annotations model.Labels `json:"annotations,omitzero"`
	Created     time.Time    `json:"creationTimestamp,omitzero"`
}

// keptObject turns a valid object into a record that says the same in JSON,
// in a form that depends on the content alone and not on how it is written.
func keptObject(ref model.Ref, place string, root *yamlpos.Node, m meta) source.Object {
	content := mustJSON(kept{
		APIVersion: group + "/v1",
		Kind:       root.Get("kind").Text(),
		Metadata:   keptMetadata{m.namespace, m.name, m.spec.Labels, m.spec.Annotations, m.spec.Created},
		Spec:       plain(root.Get("spec")),
	})
	return source.Object{Record: model.Record{Ref: ref, Place: place, Spec: model.OpaqueOf(content)}}
}

// mustJSON encodes what nodes hold, which always has a JSON form.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// plain returns what a node holds, without the entries that are null: those
// are as good as absent.
func plain(n *yamlpos.Node) any {
	switch n.Kind() {
	case yamlpos.Null:
		return nil
	case yamlpos.Bool:
		return n.Text() == "true"
	case yamlpos.Number:
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

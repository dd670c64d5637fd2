package istio

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// manifest is the content of the record of an object that is carried unchanged, in JSON.
type manifest struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   CarriedMetadata `json:"metadata"`
	Spec       any             `json:"spec"`
}

// CarriedMetadata is the metadata of an object that is carried unchanged.
type CarriedMetadata struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Labels      model.Labels `json:"labels,omitzero"`
	Annotations model.Labels `json:"annotations,omitzero"`
	Created     time.Time    `json:"creationTimestamp,omitzero"`
}

// contentOf returns the content of a valid object in JSON, in a form that depends on the
// content alone and not on the input's notation.
func contentOf(kind string, m meta, spec *yamlpos.Node) []byte {
	return mustJSON(manifest{
		APIVersion: Group + "/" + Version,
		Kind:       kind,
		Metadata:   CarriedMetadata{m.namespace, m.name, m.spec.Labels, m.spec.Annotations, m.spec.Created},
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

// undecodable explains why Istio could not decode a carried object: Istio would silently
// leave the object out. Fields that this version of Istio's API does not know are carried;
// messages of another kind are not. Kinds that Istio no longer has are carried without a
// check.
func undecodable(r *mcpapi.Resource, of Definition) (reason string) {
	known := of.message()
	if known == nil {
		return ""
	}
	url := r.GetBody().GetTypeUrl()
	if is := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]); is.Name() != protoreflect.Name(of.Name) {
		return fmt.Sprintf("%q is not the type of %s: use %s", url, of.Name, of.Message)
	}
	if err := proto.Unmarshal(r.GetBody().GetValue(), known); err != nil {
		return fmt.Sprintf("cannot be decoded as %s: %v", of.Name, err)
	}
	return ""
}

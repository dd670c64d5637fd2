package compose

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// SidecarOf returns the complete Sidecar from which a scope was made. If the scope was made
// of another object, it returns the result of [FromScope].
func SidecarOf(s *catalog.Scope) istio.Object {
	o := FromScope(s)
	o.Meta = s.Meta
	sidecar := &networking.Sidecar{}
	if s.Content != "" && specFrom([]byte(s.Content), sidecar) == nil {
		o.Spec = sidecar
	}
	return o
}

// FromWorkload returns the WorkloadEntry of a workload, without labels that Istio rejects.
func FromWorkload(w *catalog.Workload) istio.Object {
	e := w.Endpoint
	return istio.Object{Namespace: w.Key.Namespace, Name: w.Key.Name, Meta: w.Meta, Spec: &networking.WorkloadEntry{
		Address: e.Address, Ports: e.Ports.Map(), Labels: labelsOf(e), Network: e.Network,
		Locality: localityText(e.Locality), Weight: e.Weight, ServiceAccount: e.ServiceAccount,
	}}
}

// CarriedMessage converts an object carried in JSON into a message with the given message
// name. Content without a field in the message is left out.
func CarriedMessage(o *catalog.Opaque, message string) (istio.Object, error) {
	var content struct {
		Metadata istio.CarriedMetadata `json:"metadata"`
		Spec     json.RawMessage       `json:"spec"`
	}
	if err := json.Unmarshal([]byte(o.Content), &content); err != nil {
		return istio.Object{}, fmt.Errorf("its content is not JSON: %w", err)
	}
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(message))
	if err != nil {
		return istio.Object{}, fmt.Errorf("its message %s is not known here, and its content is JSON", message)
	}
	spec := known.New().Interface()
	if err := specFrom(content.Spec, spec); err != nil {
		return istio.Object{}, fmt.Errorf("its specification is not that of a %s: %w", message, err)
	}
	m := content.Metadata
	meta := model.Meta{Labels: m.Labels, Annotations: m.Annotations, Created: m.Created}
	return istio.Object{Namespace: o.Key.Namespace, Name: o.Key.Name, Meta: meta, Spec: spec}, nil
}

// specFrom reads a specification in JSON. A missing one is empty.
func specFrom(text []byte, spec proto.Message) error {
	if len(text) == 0 {
		return nil
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, spec)
}

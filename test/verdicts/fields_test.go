package verdicts

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// convert/istio takes the fields of the protobuf messages for those of the
// custom resources. They are the same.
func TestFieldsAreThoseOfTheMessages(t *testing.T) {
	for kind, message := range map[string]proto.Message{
		"ServiceEntry": &networking.ServiceEntry{}, "WorkloadEntry": &networking.WorkloadEntry{},
		"WorkloadGroup": &networking.WorkloadGroup{}, "Sidecar": &networking.Sidecar{},
	} {
		spec := theirs[kind].schema.Properties["spec"]
		sameFields(t, kind, &spec, message.ProtoReflect().Descriptor())
	}
}

func sameFields(t *testing.T, at string, s *structural.Structural, md protoreflect.MessageDescriptor) {
	t.Helper()
	if strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
		return // a scalar in JSON
	}
	for name := range s.Properties {
		if md.Fields().ByJSONName(name) == nil {
			t.Errorf("%s.%s is not in %s", at, name, md.FullName())
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		child, ok := s.Properties[fd.JSONName()]
		switch {
		case !ok:
			t.Errorf("%s.%s of %s is not in the custom resource", at, fd.JSONName(), md.FullName())
		case fd.IsMap():
		case fd.Message() != nil && fd.IsList():
			sameFields(t, at+"."+fd.JSONName(), child.Items, fd.Message())
		case fd.Message() != nil:
			sameFields(t, at+"."+fd.JSONName(), &child, fd.Message())
		}
	}
}

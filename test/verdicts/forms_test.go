package verdicts

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// forms counts the documents that were judged in each further form, so that a
// property that tries none of them fails.
var forms struct{ json, message, same int }

// sameInAllForms gives a document to the other ways of reading as well.
func sameInAllForms(t tester, text []byte, r istio.Reading) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return // there is no such form
	}
	forms.json++
	same(t, "JSON", text, r, istio.FromJSON(asJSON, istio.DefaultDomain))
	sameAsMessage(t, text, asJSON, r)
}

// sameAsMessage compares with the message that a document decodes into. What
// that message says is written down again, for it does not tell what is empty or
// zero from what is absent: the judgement is that of what it can say.
func sameAsMessage(t tester, text, asJSON []byte, r istio.Reading) {
	t.Helper()
	var document struct {
		Metadata struct{ Namespace, Name string }
		Spec     json.RawMessage
	}
	spec := emptySpec(r.Kind)
	if json.Unmarshal(asJSON, &document) != nil || protojson.Unmarshal(document.Spec, spec) != nil {
		return
	}
	forms.message++
	got := istio.FromMessage(istio.Object{Namespace: document.Metadata.Namespace, Name: document.Metadata.Name, Spec: spec})
	said := object{
		"apiVersion": group + "/v1", "kind": r.Kind, "metadata": object{"namespace": document.Metadata.Namespace, "name": document.Metadata.Name},
		"spec": json.RawMessage(must(protojson.Marshal(spec))),
	}
	same(t, "a message", text, istio.FromJSON(must(json.Marshal(said)), istio.DefaultDomain), got)
	if r.Ref == got.Ref && saysTheSame(asJSON, said) {
		forms.same++
		same(t, "a message that says all of it", text, r, got)
	}
}

func emptySpec(kind string) proto.Message {
	return map[string]proto.Message{
		"ServiceEntry": &networking.ServiceEntry{}, "WorkloadEntry": &networking.WorkloadEntry{},
		"WorkloadGroup": &networking.WorkloadGroup{}, "Sidecar": &networking.Sidecar{},
	}[kind]
}

// saysTheSame reports whether a document says just what was written down of its
// message. Null says nothing, but where a list belongs it is an error.
func saysTheSame(document []byte, said object) bool {
	var want, got object
	if json.Unmarshal(document, &want) != nil || json.Unmarshal(must(json.Marshal(said)), &got) != nil {
		return false
	}
	if kind, _ := want["kind"].(string); len(nullLists(want, theirs[kind].schema, "")) > 0 {
		return false
	}
	metadata, _ := want["metadata"].(object)
	for name := range metadata {
		if name != "name" && name != "namespace" {
			return false
		}
	}
	return len(want) == len(got) && reflect.DeepEqual(withoutNull(want["spec"]), got["spec"])
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case object:
		maps.DeleteFunc(v, func(_ string, entry any) bool { return entry == nil })
		for name := range v {
			v[name] = withoutNull(v[name])
		}
	case list:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

func same(t tester, form string, text []byte, want, got istio.Reading) {
	t.Helper()
	if w, g := judged(want), judged(got); w != g {
		t.Fatalf("read as %s it is judged otherwise\nwant:\n%s\ngot:\n%s\n\n%s", form, w, g, short(text))
	}
}

// judged is the judgement, and what became of a valid object, in whatever form
// and order it was written.
func judged(r istio.Reading) string {
	fields := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		fields[i] = p.Field
	}
	slices.Sort(fields)
	out := []string{r.Kind, r.Ref.String(), "problems at " + strings.Join(slices.Compact(fields), ", ")}
	if r.Valid() {
		object := r.Listed("")
		for _, record := range append(object.Owned, object.Record) {
			out = append(out, string(must(model.Encode(record))))
		}
	}
	return strings.Join(out, "\n")
}

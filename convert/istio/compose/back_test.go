package compose

import (
	"encoding/json"
	"strings"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// readBack reads the objects of a service, which are valid and have names of
// their own, as a source named "back".
func readBack(t *rapid.T, made Translation) (manifests string, events []model.Event) {
	t.Helper()
	if made.Invalid != "" {
		t.Fatalf("no object is made: %s", made.Invalid)
	}
	names := map[string]bool{}
	for _, part := range made.Parts {
		if names[part.String()] {
			t.Fatalf("two objects are named %s", part.String())
		}
		names[part.String()] = true
		text, err := json.MarshalIndent(part.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		manifests += string(text) + "\n"
	}
	for r := range istio.Read([]byte(strings.ReplaceAll(manifests, "}\n{", "}\n---\n{"))) {
		if !r.Valid() {
			t.Fatalf("Istio would reject %s: %v\n%s", r.String(), r.Problems, manifests)
		}
		object := r.Listed("written.yaml")
		for _, record := range append(object.Owned, object.Record) {
			record.Source = "back"
			if record.Owner != (model.Ref{}) {
				record.Owner.Source = "back"
			}
			events = append(events, model.Upsert{Record: record})
		}
	}
	return manifests, events
}

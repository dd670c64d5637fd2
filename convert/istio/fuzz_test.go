package istio_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// FuzzRead gives whatever a file may hold: what is valid is sound, could be
// written down and read again just the same, and what is invalid says where and why.
func FuzzRead(f *testing.F) {
	for _, text := range texts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for r := range istio.Read(text) {
			checkReading(t, r, 1+strings.Count(string(text), "\n"))
			if !r.Valid() {
				continue
			}
			object := r.Listed("f.yaml")
			once, again := model.Listing{Objects: []model.Object{object}}, gather("f.yaml", manifest(object))
			if len(r.Rejected) > 0 {
				once.Rejected = []model.Rejection{r.Rejection("f.yaml", "f.yaml:1")}
			}
			if diff := cmp.Diff(listing.Dump(once), listing.Dump(again)); diff != "" {
				t.Errorf("written down and read again (-before +after):\n%s", diff)
			}
		}
	})
}

// FuzzFromJSON gives whatever an API server may answer. What is JSON is judged as
// in a file, but for lists, of which a file has the items.
func FuzzFromJSON(f *testing.F) {
	for _, text := range texts(f) {
		f.Add(text)
		for r := range istio.Read(text) {
			if r.Valid() {
				f.Add(manifest(r.Listed("f.yaml")))
			}
		}
	}
	for _, text := range []string{"", "{", `{"a":1} {"a":2}`, "[]", `{"kind":"ServiceEntry","kind":1}`, strings.Repeat("[", 1000), "{\"a\":\n\"\xff\"}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := istio.FromJSON(text, istio.DefaultDomain)
		checkReading(t, r, 1+strings.Count(string(text), "\n"))
		if !json.Valid(text) {
			if r.Valid() || r.Ignored {
				t.Fatalf("%+v is no JSON", r)
			}
			return
		}
		var said struct{ APIVersion, Kind any }
		if json.Unmarshal(text, &said) != nil || said.Kind == "List" || r.Kind == "" {
			return
		}
		for other := range istio.Read(text) {
			if diff := cmp.Diff(other, r, cmp.Comparer(sameSpec)); diff != "" {
				t.Errorf("as a file and as JSON (-file +JSON):\n%s", diff)
			}
		}
	})
}

// FuzzFromMessage gives whatever a peer may send as a message of a kind. It is
// judged as its JSON form is.
func FuzzFromMessage(f *testing.F) {
	for _, text := range texts(f) {
		for r := range istio.Read(text) {
			spec := messageOf(r)
			if spec == nil {
				continue
			}
			wire, err := proto.Marshal(spec)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(0), "shop", "x", wire)
		}
	}
	f.Add(uint8(1), "", "", []byte{})
	f.Fuzz(func(t *testing.T, kind uint8, namespace, name string, wire []byte) {
		spec := empty(istio.Kind(kinds[int(kind)%len(kinds)]))
		if proto.Unmarshal(wire, spec) != nil {
			return
		}
		if !utf8.ValidString(namespace) || !utf8.ValidString(name) {
			return // JSON cannot say it
		}
		r := istio.FromMessage(istio.Object{Namespace: namespace, Name: name, Spec: spec})
		checkReading(t, r, 0)
		text, err := protojson.Marshal(spec)
		if err != nil {
			if r.Valid() {
				t.Fatalf("valid, but it has no JSON form: %v", err)
			}
			return
		}
		document, err := json.Marshal(map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": kinds[int(kind)%len(kinds)],
			"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": json.RawMessage(text),
		})
		if err != nil {
			t.Fatal(err)
		}
		if other := istio.FromJSON(document, istio.DefaultDomain); judged(other) != judged(r) {
			t.Errorf("as JSON:\n%s\nas a message:\n%s", judged(other), judged(r))
		}
		if known := empty(istio.Kind(kinds[int(kind)%len(kinds)])); r.Valid() {
			if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire, known); err != nil {
				t.Fatal(err)
			}
			checkStable(t, known)
		}
	})
}

// checkStable checks that the JSON form of a specification says all of it, and is
// that of any JSON encoder that writes fields in the order of their names.
func checkStable(t *testing.T, spec proto.Message) {
	t.Helper()
	text := istio.AppendSpec(nil, spec)
	again := spec.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(text, again); err != nil || !proto.Equal(spec, again) {
		t.Errorf("%s comes back as %s: %v", text, istio.AppendSpec(nil, again), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	if other, err := json.Marshal(content); err != nil || !bytes.Equal(text, other) {
		t.Errorf("%s is encoded by others as %s: %v", text, other, err)
	}
	if entry, ok := spec.(*networking.ServiceEntry); ok && !proto.Equal(entry, istio.EntryOf(decoded(t, text))) {
		t.Errorf("%s comes from an API server as %s", text, istio.AppendSpec(nil, istio.EntryOf(decoded(t, text))))
	} else if ok {
		for i, e := range entry.GetEndpoints() {
			entry.Endpoints[i] = &networking.WorkloadEntry{Address: e.GetAddress(), Network: e.GetNetwork(), Ports: e.GetPorts()}
		}
		if outline := istio.OutlineOf(decoded(t, text)); !proto.Equal(entry, outline) {
			t.Errorf("%s has the outline %s", text, istio.AppendSpec(nil, outline))
		}
	}
}

// decoded is what a client of an API server makes of JSON.
func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

var kinds = []string{"ServiceEntry", "WorkloadEntry", "WorkloadGroup", "Sidecar"}

func empty(kind istio.Kind) proto.Message {
	return map[istio.Kind]proto.Message{
		istio.ServiceEntry: &networking.ServiceEntry{}, istio.WorkloadEntry: &networking.WorkloadEntry{},
		"WorkloadGroup": &networking.WorkloadGroup{}, istio.Sidecar: &networking.Sidecar{},
	}[kind]
}

// messageOf is the specification of a valid object as a message; nil if it is
// not of one that can be written down here.
func messageOf(r istio.Reading) proto.Message {
	if !r.Valid() {
		return nil
	}
	var document struct{ Spec json.RawMessage }
	text := manifest(r.Listed("f.yaml"))
	spec := empty(istio.Kind(r.Kind))
	if spec == nil {
		return nil
	}
	if json.Unmarshal(text, &document) != nil || protojson.Unmarshal(document.Spec, spec) != nil {
		return nil
	}
	return spec
}

// judged is what was made of an object, wherever it came from.
func judged(r istio.Reading) string {
	out := fmt.Sprintf("%s %v ignored=%v", r.Kind, r.Ref, r.Ignored)
	for _, p := range r.Problems {
		out += fmt.Sprintf("\n%s: %s", p.Field, strings.ReplaceAll(p.Reason, "\u00a0", " "))
	}
	if r.Valid() {
		out += "\n" + listing.Dump(model.Listing{Objects: []model.Object{r.Listed("")}})
	}
	return out
}

func sameSpec(a, b model.Spec) bool {
	return a == nil && b == nil || a != nil && b != nil && a.EqualSpec(b)
}

// checkReading checks what holds of every reading of a text of so many lines.
func checkReading(t *testing.T, r istio.Reading, lines int) {
	t.Helper()
	states := 0
	for _, holds := range []bool{r.Ignored, len(r.Problems) > 0, r.Valid()} {
		if holds {
			states++
		}
	}
	if states != 1 {
		t.Fatalf("%d states hold of %+v", states, r)
	}
	for _, p := range r.Problems {
		if p.Reason == "" || p.Line > lines+1 || (p.Line < 1) != (lines == 0) {
			t.Errorf("problem %+v in %d lines", p, lines)
		}
	}
	if r.Valid() {
		checkRecords(t, r.Listed("f.yaml"))
	}
}

func checkRecords(t *testing.T, object model.Object) {
	t.Helper()
	ref, seen := object.Record.Ref, map[model.Ref]bool{}
	if ref.Name == "" || ref.Namespace == "" || strings.Contains(ref.Name, "/") {
		t.Errorf("record %v", ref)
	}
	for _, r := range append(object.Owned, object.Record) {
		if seen[r.Ref] {
			t.Errorf("%v is listed twice", r.Ref)
		}
		seen[r.Ref] = true
		if r.Ref != ref && (r.Owner != ref || !strings.HasPrefix(r.Name, ref.Name+"/") || r.Namespace != ref.Namespace) {
			t.Errorf("%v is owned by %v", r.Ref, r.Owner)
		}
		data, err := model.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := model.Decode(data); err != nil || !back.SameContent(r) {
			t.Errorf("stored as %s: %v", data, err)
		}
	}
}

// texts are the manifests of all transcripts.
func texts(f *testing.F) (all [][]byte) {
	f.Helper()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, member := range archive.Files {
			all = append(all, member.Data)
		}
	}
	return all
}

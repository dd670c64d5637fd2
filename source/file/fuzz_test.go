package file_test

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// Whatever a file holds: what is taken is sound, could be written down and
// taken again just the same, and what is refused says where and why.
func FuzzManifest(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, member := range archive.Files {
			f.Add(member.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := file.Parse("f.yaml", text)
		seen := map[model.Ref]bool{}
		for _, object := range l.Objects {
			checkObject(t, object, seen)
			again := file.Parse("f.yaml", manifest(t, object))
			if diff := cmp.Diff(dump(source.Listing{Objects: []source.Object{object}}), dump(again)); diff != "" {
				t.Errorf("written down and read again (-before +after):\n%s", diff)
			}
		}
		for _, r := range l.Refused {
			checkRefusal(t, r, 1+strings.Count(string(text), "\n"))
		}
	})
}

func checkObject(t *testing.T, object source.Object, seen map[model.Ref]bool) {
	t.Helper()
	ref := object.Record.Ref
	if object.Record.Place != "f.yaml" || ref.Name == "" || ref.Namespace == "" || strings.Contains(ref.Name, "/") {
		t.Errorf("record %v in %q", ref, object.Record.Place)
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

func checkRefusal(t *testing.T, r source.Refusal, lines int) {
	t.Helper()
	number, ok := strings.CutPrefix(r.Where, "f.yaml:")
	line, err := strconv.Atoi(number)
	if !ok || err != nil || line < 1 || line > lines+1 {
		t.Errorf("refused at %q of %d lines", r.Where, lines)
	}
	if r.Reason == "" || r.Place != "f.yaml" || (r.Ref == model.Ref{}) != (r.Object == "") {
		t.Errorf("refusal %+v", r)
	}
}

// manifest writes an object down as JSON.
func manifest(t *testing.T, object source.Object) []byte {
	t.Helper()
	doc := map[string]any{"apiVersion": "networking.istio.io/v1"}
	switch spec := object.Record.Spec.(type) {
	case model.Service:
		doc["kind"] = "ServiceEntry"
		doc["metadata"] = metadata(object.Record.Ref, spec.Meta)
		doc["spec"] = serviceSpec(spec, object.Owned)
	case model.Workload:
		doc["kind"] = "WorkloadEntry"
		doc["metadata"] = metadata(object.Record.Ref, spec.Meta)
		doc["spec"] = endpointSpec(spec.Endpoint)
		if spec.Endpoint.Health == model.Unhealthy {
			doc["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Healthy", "status": "False"}}}
		}
	case model.Scope:
		doc["kind"] = "Sidecar"
		doc["metadata"] = metadata(object.Record.Ref, spec.Meta)
		doc["spec"] = json.RawMessage(spec.Content)
	case model.Opaque:
		return []byte(spec.Content)
	default:
		t.Fatalf("specification %T", spec)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func metadata(ref model.Ref, m model.Meta) map[string]any {
	out := map[string]any{
		"name": ref.Name, "namespace": ref.Namespace,
		"labels": m.Labels.Map(), "annotations": m.Annotations.Map(),
	}
	if !m.Created.IsZero() {
		out["creationTimestamp"] = m.Created
	}
	return out
}

func serviceSpec(s model.Service, owned []model.Record) map[string]any {
	out := map[string]any{
		"hosts": s.Hosts.Slice(), "addresses": s.Addresses.Slice(), "location": s.Location, "resolution": s.Resolution,
		"exportTo": s.ExportTo.Slice(), "subjectAltNames": s.SubjectAltNames.Slice(), "ports": s.Ports.Slice(),
	}
	if s.WorkloadSelector.Len() > 0 {
		out["workloadSelector"] = map[string]any{"labels": s.WorkloadSelector.Map()}
	}
	var endpoints []any
	for _, r := range owned {
		endpoints = append(endpoints, endpointSpec(r.Spec.(model.Endpoint)))
	}
	if endpoints != nil {
		out["endpoints"] = endpoints
	}
	return out
}

func endpointSpec(e model.Endpoint) map[string]any {
	out := map[string]any{
		"address": e.Address, "labels": e.Labels.Map(), "network": e.Network, "weight": e.Weight,
		"locality":       strings.TrimRight(strings.Join([]string{e.Locality.Region, e.Locality.Zone, e.Locality.SubZone}, "/"), "/"),
		"serviceAccount": e.ServiceAccount,
	}
	if e.Ports.Len() > 0 {
		out["ports"] = e.Ports.Map()
	}
	return out
}

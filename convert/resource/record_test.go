package resource_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
)

// sent returns the message of a record, as it is after its way through bytes.
func sent(t rapid.TB, r model.Record) *api.Record {
	t.Helper()
	text, err := proto.Marshal(resource.Message(&r))
	if err != nil {
		t.Fatalf("encode %+v: %v", r.Ref, err)
	}
	m := new(api.Record)
	if err := proto.Unmarshal(text, m); err != nil {
		t.Fatalf("decode %+v: %v", r.Ref, err)
	}
	return m
}

func received(t rapid.TB, m *api.Record) model.Record {
	t.Helper()
	r, err := resource.Record(m)
	if err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	return r
}

// same compares everything of two records.
func same(a, b model.Record) bool {
	return a.SameContent(b) && a.UID == b.UID && a.Revision == b.Revision && a.Generation == b.Generation
}

// sendable returns the record without all that a message has no field for.
func sendable(r model.Record) model.Record {
	r.Status.LegacyHeld = ""
	if e, ok := r.Spec.(model.MergedEndpoint); ok {
		e.ExportTo = model.List[string]{}
		r.Spec = e
	}
	return r
}

// refTo returns a reference as a store holds it.
func refTo(r model.Ref) model.Ref {
	if r.Kind == model.KindMergedService || r.Kind == model.KindMergedEndpoint {
		r.Source = model.MergedSource
	}
	return r
}

func drawRecord(t *rapid.T) model.Record {
	r := draw(t, reflect.TypeFor[envelope]()).Interface().(envelope).record()
	r.Kind = rapid.SampledFrom(slices.Sorted(maps.Keys(specs))).Draw(t, "kind")
	if rapid.Bool().Draw(t, "owned") {
		r.Owner.Kind = rapid.SampledFrom(slices.Sorted(maps.Keys(specs))).Draw(t, "owner")
	} else {
		r.Owner = model.Ref{}
	}
	if r.Status.Stale == "" {
		r.Status.Since = time.Time{}
	}
	r.Ref, r.Owner = refTo(r.Ref), refTo(r.Owner)
	r.Spec = draw(t, specs[r.Kind]).Interface().(model.Spec)
	return r
}

// envelope is a record without its specification. Its reference is the same as in a record.
type envelope struct {
	Ref                  model.Ref
	UID                  model.UID
	Revision, Generation uint64
	Owner                model.Ref
	Path                 model.Path
	Place                string
	Status               model.Status
}

func (e envelope) record() model.Record {
	return model.Record{
		Ref: e.Ref, UID: e.UID, Revision: e.Revision, Generation: e.Generation,
		Owner: e.Owner, Path: e.Path, Place: e.Place, Status: e.Status,
	}
}

// A new field of a record has to be added to envelope, and is drawn and varied from then on.
func TestEnvelopeHasEveryFieldOfARecord(t *testing.T) {
	t.Parallel()
	if got, want := reflect.TypeFor[envelope]().NumField(), reflect.TypeFor[model.Record]().NumField()-1; got != want {
		t.Errorf("%d fields of %d", got, want)
	}
}

func TestAnyRecordIsTheSameAfterItsWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		if got := received(t, sent(t, r)); !same(got, sendable(r)) {
			t.Fatalf("%#v\ncomes back as\n%#v", r, got)
		}
	})
}

// A field of a specification that Message or Record forgets fails here, also a new one.
func TestEveryFieldOfASpecificationIsSent(t *testing.T) {
	t.Parallel()
	for kind := range model.Kinds() {
		if specs[kind] == nil {
			t.Errorf("add the specification of %s to specs", kind)
		}
	}
	for kind, spec := range specs {
		all := variants(t, spec)
		record := func(v variant) model.Record {
			return model.Record{Ref: refTo(model.Ref{Kind: kind}), Spec: v.value.Interface().(model.Spec)}
		}
		full := sent(t, record(all[0]))
		for _, v := range all {
			m := sent(t, record(v))
			if got, want := received(t, m), sendable(record(v)); !same(got, want) {
				t.Errorf("%s: with another %q\n%+v\ncomes back as\n%+v", kind, v.path, want.Spec, got.Spec)
				break // a forgotten field fails nearly all of them
			}
			lost := kind == model.KindMergedEndpoint && strings.HasPrefix(v.path, ".ExportTo")
			if first := v.path == ""; proto.Equal(m, full) != (first || lost) {
				t.Errorf("%s: the message with another %s: %v", kind, v.path, m)
			}
		}
	}
}

func TestEveryFieldOfTheEnvelopeIsSent(t *testing.T) {
	t.Parallel()
	all := variants(t, reflect.TypeFor[envelope]())
	record := func(v variant) model.Record {
		r := v.value.Interface().(envelope).record()
		r.Spec = model.Opaque{Content: "content"}
		return r
	}
	full := sent(t, record(all[0]))
	for _, v := range all {
		if v.path == ".Ref.Kind" && record(v).Kind == "" {
			continue // no record is like this, and Record rejects it
		}
		m, want := sent(t, record(v)), sendable(record(v))
		if want.Status.Stale == "" {
			want.Status.Since = time.Time{} // it was the one of LegacyHeld
		}
		if got := received(t, m); !same(got, want) {
			t.Errorf("%s is lost: %v", v.path, m)
		}
		lost := v.path == ".Status.LegacyHeld"
		if first := v.path == ""; proto.Equal(m, full) != (first || lost) {
			t.Errorf("the message with another %s: %v", v.path, m)
		}
	}
}

func TestMergedKindsHaveNoSourceInMessages(t *testing.T) {
	t.Parallel()
	owner := model.Ref{Kind: model.KindMergedService, Key: model.Key{Source: model.MergedSource, Namespace: "shop", Name: "a.example"}}
	ref := model.Ref{Kind: model.KindMergedEndpoint, Key: model.Key{Source: model.MergedSource, Namespace: "shop", Name: "a.example/80/10.0.0.1:80"}}
	m := sent(t, model.Record{Ref: ref, Owner: owner, Spec: model.MergedEndpoint{Source: "files"}})
	if m.Ref.Source != "" || m.Owner.Source != "" {
		t.Errorf("the message has a source: %v", m)
	}
	if got := received(t, m); got.Ref != ref || got.Owner != owner {
		t.Errorf("%v of %v comes back as %v of %v", ref, owner, got.Ref, got.Owner)
	}
	if got := resource.RefOf(resource.RefMessage(ref)); got != ref {
		t.Errorf("%v comes back as %v", ref, got)
	}
}

// Empty parts are unset, so that a reader need not compare them with nothing.
func TestEmptyPartsAreUnset(t *testing.T) {
	t.Parallel()
	for kind, m := range map[model.Kind]*api.Record{
		model.KindService:  {Content: &api.Record_Service{Service: &api.Service{}}},
		model.KindEndpoint: {Content: &api.Record_Endpoint{Endpoint: &api.Endpoint{}}},
		model.KindSource:   {Content: &api.Record_SourceMark{SourceMark: &api.SourceMark{}}},
		model.KindHold:     {Content: &api.Record_Hold{Hold: &api.Hold{}}},
		model.KindSplit:    {Content: &api.Record_Split{Split: &api.Split{}}},
		novelty:            {Content: &api.Record_Opaque{Opaque: &api.Opaque{}}},
	} {
		m.Ref, m.Uid = &api.Ref{Kind: string(kind), Source: "s", Name: "n"}, make([]byte, 16)
		if got := sent(t, received(t, m)); !proto.Equal(got, m) {
			t.Errorf("%v comes back as %v", m, got)
		}
	}
}

// The path of a file may have any bytes.
func TestBytesThatAreNoTextAreReplaced(t *testing.T) {
	t.Parallel()
	m := sent(t, model.Record{
		Ref: model.Ref{Kind: model.KindWorkload, Key: model.Key{Name: "n\xff"}}, Place: "dir/\xff\xfe.yaml",
		Spec: model.Workload{
			Meta: model.Meta{Labels: model.MapOf(map[string]string{"a\xff": "\xff"})},
			Only: model.ListOf("\xff", "b"), Endpoint: model.Endpoint{Ports: model.MapOf(map[string]uint32{"\xff": 1})},
		},
	})
	if want := "dir/\uFFFD.yaml"; m.Place != want {
		t.Errorf("the place is %q, want %q", m.Place, want)
	}
	q := sent(t, model.Record{Ref: model.Ref{Kind: novelty}, Spec: model.Opaque{Content: "\xff\xfe"}})
	if got := q.GetOpaque().GetContent(); string(got) != "\xff\xfe" {
		t.Errorf("opaque content comes as %q", got)
	}
}

// No stored record has a specification of another kind. If one had, its readers would not be
// sent the wrong content.
func TestASpecificationOfAnotherKindIsNotSent(t *testing.T) {
	t.Parallel()
	for _, spec := range []model.Spec{nil, model.Endpoint{}, model.Opaque{}} {
		r := model.Record{Ref: model.Ref{Kind: model.KindService}, Spec: spec}
		if m := resource.Message(&r); m.Content != nil {
			t.Errorf("%T of a service is sent as %v", spec, m)
		}
	}
}

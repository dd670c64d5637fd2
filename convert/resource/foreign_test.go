package resource_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
)

func TestForeignMessagesAreRejected(t *testing.T) {
	t.Parallel()
	never := &timestamppb.Timestamp{Nanos: -1}
	mark := func(m *api.SourceMark) func(*api.Record) {
		return func(r *api.Record) {
			r.Ref.Kind, r.Content = "Source", &api.Record_SourceMark{SourceMark: m}
		}
	}
	for want, spoil := range map[string]func(m *api.Record){
		"ref.kind: must be set": func(m *api.Record) { m.Ref = nil },
		"ref.source: is \"x\", but records of kind MergedService have no source; leave it empty": func(m *api.Record) { m.Ref.Kind, m.Ref.Source = "MergedService", "x" },
		"owner.source: is \"x\"":            func(m *api.Record) { m.Owner = &api.Ref{Kind: "MergedService", Source: "x"} },
		"uid: has 3 bytes; it must have 16": func(m *api.Record) { m.Uid = []byte("abc") },
		"uid: has 17 bytes":                 func(m *api.Record) { m.Uid = make([]byte, 17) },
		"path: has \"a,b\"":                 func(m *api.Record) { m.Path = []string{"a,b"} },
		"path: has \"\"":                    func(m *api.Record) { m.Path = []string{"a", ""} },
		"path: has 65 names":                func(m *api.Record) { m.Path = slices.Repeat([]string{"a"}, 65) },
		"stale_since: is no time":           func(m *api.Record) { m.Stale, m.StaleSince = "why", never },
		"stale_since: is set without stale": func(m *api.Record) { m.StaleSince = timestamppb.New(time.Unix(1, 0)) },
		"content: must be set":              func(m *api.Record) { m.Content = nil },
		"content: does not fit the kind \"Service\"; set the field of the kind": func(m *api.Record) { m.Content = &api.Record_Endpoint{} },
		"content: does not fit the kind \"Novelty\"":                            func(m *api.Record) { m.Ref.Kind = "Novelty" },
		"service.meta.created: is no time": func(m *api.Record) {
			m.GetService().Meta = &api.Meta{Created: never}
		},
		"service.ports[1].path: has \"!\"": func(m *api.Record) {
			m.GetService().Ports = []*api.Port{nil, {Path: []string{"!"}}}
		},
		"merged_service.service.meta.created: is no time": func(m *api.Record) {
			m.Ref = &api.Ref{Kind: "MergedService"}
			m.Content = &api.Record_MergedService{MergedService: &api.MergedService{Service: &api.Service{Meta: &api.Meta{Created: never}}}}
		},
		"hold.since: is no time": func(m *api.Record) {
			m.Ref.Kind, m.Content = "Hold", &api.Record_Hold{Hold: &api.Hold{Since: never}}
		},
		"source_mark.hold_until: is no time":                         mark(&api.SourceMark{HoldUntil: never}),
		"source_mark.departure.share: is NaN; it must be from":       mark(&api.SourceMark{Departure: &api.Departure{Share: math.NaN()}}),
		"source_mark.departure.share: is 1.5":                        mark(&api.SourceMark{Departure: &api.Departure{Share: 1.5}}),
		"source_mark.departure.share: is -0":                         mark(&api.SourceMark{Departure: &api.Departure{Share: math.Copysign(0, -1)}}),
		"source_mark.departure.confirmed_after: is no duration":      mark(&api.SourceMark{Departure: &api.Departure{ConfirmedAfter: &durationpb.Duration{Seconds: 1e11}}}),
		"source_mark.judgements[1].held[0].since: is no time of the": mark(&api.SourceMark{Judgements: []*api.Judgement{{}, {Held: []*api.HeldDrop{{Since: never}}}}}),
	} {
		m := &api.Record{Ref: &api.Ref{Kind: "Service"}, Uid: make([]byte, 16), Content: &api.Record_Service{Service: &api.Service{}}}
		spoil(m)
		if r, err := resource.Record(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v and %v", want, err, r)
		}
	}
	if _, err := resource.Record(nil); err == nil {
		t.Error("no message is taken as a record")
	}
}

// FuzzRecord looks for messages that break the reader, and for records that do not come back
// as the same message.
func FuzzRecord(f *testing.F) {
	for kind, spec := range specs {
		r := model.Record{
			Ref: refTo(model.Ref{Kind: kind, Key: model.Key{Source: "s", Namespace: "ns", Name: "n"}}), UID: model.UID{1}, Revision: 7, Generation: 1, Path: "east,west",
			Status: model.Status{Stale: "why", Since: time.Unix(1e9, 0)}, Spec: variants(f, spec)[0].value.Interface().(model.Spec),
		}
		text, err := proto.Marshal(resource.Message(&r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(api.Record)
		if proto.Unmarshal(data, m) != nil {
			return
		}
		r, err := resource.Record(m)
		if err != nil {
			return
		}
		again := sent(t, r)
		if canonical(m.ProtoReflect()); !proto.Equal(m, again) {
			t.Fatalf("%v\ncomes back as\n%v", m, again)
		}
		if got := received(t, again); !same(got, r) {
			t.Fatalf("%#v\ncomes back as\n%#v", r, got)
		}
	})
}

// canonical unsets what means the same unset: empty messages that are neither items nor the
// content, and the time that Go takes for none. Unknown fields are removed. Messages that are
// always sent are added.
func canonical(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				canonical(value.List().Get(i).Message())
			}
		case field.IsMap() || field.Message() == nil:
		default:
			inner := value.Message()
			canonical(inner)
			at, isTime := inner.Interface().(*timestamppb.Timestamp)
			empty := proto.Size(inner.Interface()) == 0 && !isTime || isTime && at.AsTime().IsZero()
			if empty && field.ContainingOneof() == nil {
				m.Clear(field)
			}
		}
		return true
	})
	for name := range strings.FieldsSeq(always[m.Descriptor().Name()]) {
		m.Mutable(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
	}
}

// always are the messages that are sent even if they are empty.
var always = map[protoreflect.Name]string{
	"Record": "ref", "MergedService": "service", "MergedEndpoint": "endpoint", "Workload": "endpoint", "Consumption": "consumer",
}

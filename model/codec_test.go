package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// same compares records by everything they hold, the store's fields included.
func same(a, b model.Record) bool {
	return a.SameContent(b) && a.UID == b.UID && a.Revision == b.Revision && a.Generation == b.Generation
}

// Whatever a record says is there again after it was stored.
func TestCodecLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		text, err := model.Encode(r)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		got, err := model.Decode(text)
		if err != nil {
			t.Fatalf("decode %s: %v", text, err)
		}
		if !same(got, r) {
			t.Fatalf("%s comes back as %s", show(r), show(got))
		}
	})
}

// A field that the codec forgot would show here, also a new one.
func TestCodecKeepsEveryField(t *testing.T) {
	t.Parallel()
	for kind, spec := range specs {
		variants(t, spec, func(path string, _, other model.Spec) {
			text, err := model.Encode(model.Record{Ref: model.Ref{Kind: kind}, Spec: other})
			if err != nil {
				t.Fatalf("%s: encode with %s changed: %v", kind, path, err)
			}
			got, err := model.Decode(text)
			if err != nil {
				t.Fatalf("%s: decode %s: %v", kind, text, err)
			}
			if !got.Spec.EqualSpec(other) {
				t.Errorf("%s: %s is lost: %s", kind, path, text)
			}
		})
	}
}

// An older Isthmus gives back what a newer one stored of a kind that only the
// newer one understands.
func TestUnknownKindsAreCarried(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		`{"hosts":["a"],"mode":{"x":1.50,"y":null}}`, `{}`, `[1,2]`, `"text"`, `7`, `null`,
		`{"labels":{"a":"b"},"type":"t","content":"Y29udGVudA=="}`, `{"labels":{},"content":""}`, `{"type":"","content":""}`,
		`{"content":"plain"}`, `{"content":"Y29udGVudA=="}`, `{"content":{}}`, `{"content":"Y29udGVudA==","more":1}`,
		`{"big":123456789012345678901234567890,"dup":1,"dup":2,"html":"<&>"}`,
	} {
		text := `{"kind":"Novelty","key":{"source":"s","name":"n"},"uid":"00000000000000000000000000000000","revision":1,"generation":1,"spec":` + spec + `}`
		r, err := model.Decode([]byte(text))
		if err != nil {
			t.Fatalf("decode %s: %v", text, err)
		}
		again, err := model.Encode(r)
		if err != nil {
			t.Fatalf("encode %s: %v", text, err)
		}
		var had, has struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal([]byte(text), &had); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &has); err != nil {
			t.Fatal(err)
		}
		if want := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(spec); string(has.Spec) != want {
			t.Errorf("specification %s comes back as %s", spec, has.Spec)
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":                 ``,
		"half a record":           `{"kind":"Service"`,
		"something else":          `[]`,
		"no specification":        `{"kind":"Service","key":{"name":"n"}}`,
		"another specification":   `{"kind":"Service","key":{"name":"n"},"spec":{"hosts":{"a":1}}}`,
		"a mark that is a list":   `{"kind":"Source","key":{"name":"n"},"spec":[]}`,
		"a short uid":             `{"kind":"Source","uid":"00","spec":{}}`,
		"a long uid":              `{"kind":"Source","uid":"0000000000000000000000000000000000","spec":{}}`,
		"a uid that is no number": `{"kind":"Source","uid":"0000000000000000000000000000000g","spec":{}}`,
		"a negative port":         `{"kind":"Endpoint","spec":{"address":"a","ports":{"http":-1}}}`,
	} {
		if r, err := model.Decode([]byte(text)); err == nil {
			t.Errorf("%s: %s is taken as %s", name, text, show(r))
		} else if !strings.HasPrefix(err.Error(), "record: ") {
			t.Errorf("%s: the error does not say where it comes from: %v", name, err)
		}
	}
}

// FuzzDecode looks for text that breaks the decoder, and for records that do
// not come back as they were.
func FuzzDecode(f *testing.F) {
	for kind, spec := range specs {
		text, err := model.Encode(model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Source: "s", Namespace: "ns", Name: "n"}}, Spec: spec})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"kind":"Service","key":{"source":"s","name":"n"},"uid":"000102030405060708090a0b0c0d0e0f","status":{"stale":"x","since":"2026-01-02T03:04:05+06:00"},"spec":{"hosts":["a"],"labels":{"a":"b"},"ports":[{"number":1}]}}`))
	f.Add([]byte(`{"kind":"Novelty","spec":{"labels":{"a":"b"},"created":"2026-01-02T03:04:05Z","type":"t","content":"Y29udGVudA=="}}`))
	f.Add([]byte(`{"kind":"Novelty","spec":{"a":[1, "<"]},"SPEC":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := model.Decode(data)
		if err != nil {
			return
		}
		text, err := model.Encode(first)
		if err != nil {
			t.Fatalf("%s cannot be encoded again: %v", show(first), err)
		}
		second, err := model.Decode(text)
		if err != nil {
			t.Fatalf("%s cannot be decoded again: %v", text, err)
		}
		if !same(first, second) {
			t.Fatalf("%s comes back as %s", show(first), show(second))
		}
	})
}

// show avoids the record's own String, which is that of its reference.
func show(r model.Record) string {
	type plain struct {
		Ref, Owner           string
		UID                  model.UID
		Revision, Generation uint64
		Path, Place          string
		Stale, Held, Spec    string
		Since                time.Time
	}
	return fmt.Sprintf("%+v", plain{
		fmt.Sprintf("%q", r.Ref), fmt.Sprintf("%q", r.Owner), r.UID, r.Revision, r.Generation,
		string(r.Path), r.Place, r.Status.Stale, r.Status.LegacyHeld, fmt.Sprintf("%+v", r.Spec), r.Status.Since,
	})
}

// drawRecord draws a record of any kind, an unknown one included.
func drawRecord(t *rapid.T) model.Record {
	text := rapid.String()
	ref := rapid.Custom(func(t *rapid.T) model.Ref {
		kinds := []model.Kind{"Service", "Endpoint", "Workload", "Source", "Scope", "Consumption", "Hold", "Novelty", ""}
		return model.Ref{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Key: model.Key{
			Source: text.Draw(t, "source"), Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"),
		}}
	})
	r := model.Record{
		Ref: ref.Draw(t, "ref"), UID: model.UID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uid")),
		Revision: rapid.Uint64().Draw(t, "revision"), Generation: rapid.Uint64().Draw(t, "generation"),
		Owner: rapid.OneOf(rapid.Just(model.Ref{}), ref).Draw(t, "owner"), Path: model.Path(text.Draw(t, "path")), Place: text.Draw(t, "place"),
		Status: model.Status{Stale: text.Draw(t, "stale"), LegacyHeld: text.Draw(t, "held"), Since: drawTime(t)},
	}
	r.Spec = drawSpec(t, r.Kind)
	return r
}

func drawHold(t *rapid.T) model.Hold {
	item := rapid.Custom(func(t *rapid.T) model.HoldItem {
		return model.HoldItem{
			Kind: model.Kind(rapid.String().Draw(t, "kind")), Namespace: rapid.String().Draw(t, "namespace"), Name: rapid.String().Draw(t, "name"),
			Extent: rapid.SampledFrom([]model.Extent{model.ThisRecord, model.WithOwned, model.OnlyOwned}).Draw(t, "extent"),
		}
	})
	return model.Hold{
		Cause:  model.Ref{Kind: "Service", Key: model.Key{Source: rapid.String().Draw(t, "source"), Name: rapid.String().Draw(t, "cause")}},
		Reason: rapid.String().Draw(t, "reason"), Since: drawTime(t), Lost: rapid.Uint32().Draw(t, "lost"), Parts: rapid.Uint32().Draw(t, "parts"),
		Everything: rapid.Bool().Draw(t, "everything"), Items: model.ListOf(rapid.SliceOf(item).Draw(t, "items")...),
	}
}

func drawSpec(t *rapid.T, kind model.Kind) model.Spec {
	switch kind {
	case model.KindService:
		return drawService(t)
	case model.KindEndpoint:
		return drawEndpoint(t)
	case model.KindWorkload:
		return model.Workload{Meta: drawMeta(t), Endpoint: drawEndpoint(t), Only: model.ListOf(rapid.SliceOf(rapid.String()).Draw(t, "only")...)}
	case model.KindSource:
		return model.SourceMark{}
	case model.KindHold:
		return drawHold(t)
	case model.KindConsumption:
		name := rapid.Custom(func(t *rapid.T) model.ServiceName {
			return model.ServiceName{Namespace: rapid.String().Draw(t, "namespace"), Host: rapid.String().Draw(t, "host")}
		})
		return model.Consumption{Consumer: name.Draw(t, "consumer"), Providers: model.ListOf(rapid.SliceOf(name).Draw(t, "providers")...)}
	case model.KindScope:
		hosts := rapid.SliceOf(rapid.String()).Draw(t, "hosts")
		return model.Scope{Meta: drawMeta(t), WorkloadSelector: drawLabels(t), Hosts: model.ListOf(hosts...), Content: rapid.String().Draw(t, "rest")}
	default:
		bytes := rapid.SliceOf(rapid.Byte())
		encoded := rapid.Map(rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.MapOf(rapid.String(), rapid.Bool()).AsAny(), wrapped.AsAny()), func(v any) []byte {
			text, _ := json.Marshal(v)
			return text
		})
		q := model.OpaqueOf(rapid.OneOf(bytes, encoded).Draw(t, "content"))
		if rapid.Bool().Draw(t, "described") {
			q.Meta, q.Type = drawMeta(t), rapid.String().Draw(t, "type")
		}
		return q
	}
}

// wrapped looks like the form in which content that is no JSON is stored.
var wrapped = rapid.MapOfN(rapid.Just("content"), rapid.SampledFrom([]string{"", "x", "Y29udGVudA==", "e30="}), 1, 1)

func drawService(t *rapid.T) model.Service {
	texts := rapid.Map(rapid.SliceOf(rapid.String()), func(s []string) model.List[string] { return model.ListOf(s...) })
	port := rapid.Custom(func(t *rapid.T) model.Port {
		number := rapid.Uint32()
		return model.Port{Number: number.Draw(t, "number"), Name: rapid.String().Draw(t, "name"), Protocol: rapid.String().Draw(t, "protocol"), TargetPort: number.Draw(t, "target")}
	})
	return model.Service{
		Meta: drawMeta(t), Hosts: texts.Draw(t, "hosts"), Addresses: texts.Draw(t, "addresses"),
		Ports:    model.ListOf(rapid.SliceOfN(port, 0, 3).Draw(t, "ports")...),
		Location: model.Location(rapid.String().Draw(t, "location")), Resolution: model.Resolution(rapid.String().Draw(t, "resolution")),
		ExportTo: texts.Draw(t, "exportTo"), SubjectAltNames: texts.Draw(t, "subjectAltNames"), WorkloadSelector: drawLabels(t),
	}
}

func drawEndpoint(t *rapid.T) model.Endpoint {
	text := rapid.String()
	return model.Endpoint{
		Address: text.Draw(t, "address"), Also: model.ListOf(rapid.SliceOfN(text, 0, 2).Draw(t, "also")...), Ports: model.MapOf(rapid.MapOf(text, rapid.Uint32()).Draw(t, "ports")), Exact: rapid.Bool().Draw(t, "exact"), Labels: drawLabels(t),
		Network: text.Draw(t, "network"), Node: text.Draw(t, "node"), Weight: rapid.Uint32().Draw(t, "weight"), Registered: rapid.Int64().Draw(t, "registered"), ServiceAccount: text.Draw(t, "serviceAccount"),
		Locality: model.Locality{Region: text.Draw(t, "region"), Zone: text.Draw(t, "zone"), SubZone: text.Draw(t, "subZone")},
		Health:   model.Health(text.Draw(t, "health")),
	}
}

func drawMeta(t *rapid.T) model.Meta {
	return model.Meta{Labels: drawLabels(t), Annotations: drawLabels(t), Created: drawTime(t)}
}

func drawLabels(t *rapid.T) model.Labels {
	return model.MapOf(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels"))
}

func drawTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "no time") {
		return time.Time{}
	}
	zone := time.FixedZone("", 60*rapid.IntRange(-12*60, 14*60).Draw(t, "zone"))
	return time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")).In(zone)
}

package model_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// novelty is a kind that nobody understands yet.
const novelty model.Kind = "Novelty"

// specs is one of each specification, by the kind that carries it.
var specs = map[model.Kind]model.Spec{
	model.KindService:     model.Service{},
	model.KindEndpoint:    model.Endpoint{},
	model.KindWorkload:    model.Workload{},
	model.KindSource:      model.SourceMark{},
	model.KindScope:       model.Scope{},
	model.KindConsumption: model.Consumption{},
	model.KindHold:        model.Hold{},
	model.KindSplit:       model.Split{},

	model.KindMergedService:  model.MergedService{},
	model.KindMergedEndpoint: model.MergedEndpoint{},

	novelty: model.Opaque{},
}

// samples are three different values of each type that fields are made of. The
// first is the zero value, and the last differs from the second in one detail.
var samples = map[reflect.Type][3]any{
	reflect.TypeFor[string]():             {"", "one", "two"},
	reflect.TypeFor[uint32]():             {uint32(0), uint32(1), uint32(2)},
	reflect.TypeFor[int64]():              {int64(0), int64(1), int64(2)},
	reflect.TypeFor[float64]():            {0.0, 0.5, 0.25},
	reflect.TypeFor[time.Duration]():      {time.Duration(0), time.Minute, time.Hour},
	reflect.TypeFor[time.Time]():          {time.Time{}, time.Unix(1e9, 0).UTC(), time.Unix(1e9, 1).UTC()},
	reflect.TypeFor[model.Path]():         {model.Path(""), model.Path("east"), model.Path("east,west")},
	reflect.TypeFor[model.Kind]():         {model.Kind(""), model.KindService, model.KindEndpoint},
	reflect.TypeFor[model.Location]():     {model.Location(""), model.MeshInternal, model.MeshExternal},
	reflect.TypeFor[model.Resolution]():   {model.Resolution(""), model.ResolutionStatic, model.ResolutionDNS},
	reflect.TypeFor[model.Preference]():   {model.Preference(""), model.PreferSameZone, model.PreferSameNode},
	reflect.TypeFor[model.Affinity]():     {model.Affinity(""), model.ClientIP, model.Affinity("OTHER")},
	reflect.TypeFor[model.Health]():       {model.Healthy, model.Unhealthy, model.Draining},
	reflect.TypeFor[model.List[string]](): {model.List[string]{}, model.ListOf("a", "b"), model.ListOf("b", "a")},
	reflect.TypeFor[model.Labels]():       {model.Labels{}, labels("a", "1", "b", "2"), labels("a", "1", "b", "3")},
	reflect.TypeFor[model.Map[uint32]]():  {model.Map[uint32]{}, ports("http", 1), ports("web", 1)},
	reflect.TypeFor[bool]():               {false, true, false},
	reflect.TypeFor[model.Judgements]():   {model.Judgements{}, judged(1), judged(2)},
	reflect.TypeFor[model.Extent]():       {model.ThisRecord, model.WithOwned, model.OnlyOwned},
	reflect.TypeFor[model.List[model.HoldItem]](): {
		model.List[model.HoldItem]{}, model.ListOf(model.HoldItem{Name: "a"}), model.ListOf(model.HoldItem{Name: "a", Extent: model.OnlyOwned}),
	},
	reflect.TypeFor[model.ServiceName](): {model.ServiceName{}, model.ServiceName{Namespace: "a", Host: "b"}, model.ServiceName{Namespace: "b", Host: "b"}},
	reflect.TypeFor[model.List[model.ServiceName]](): {
		model.List[model.ServiceName]{}, model.ListOf(model.ServiceName{Host: "a"}), model.ListOf(model.ServiceName{Host: "b"}),
	},
	reflect.TypeFor[[]model.Backend](): {
		[]model.Backend(nil), []model.Backend{{Labels: labels("a", "1"), Weight: 1}}, []model.Backend{{Labels: labels("a", "1"), Weight: 2}},
	},
	reflect.TypeFor[model.List[model.Port]](): {model.List[model.Port]{}, model.ListOf(model.Port{Number: 80}), model.ListOf(model.Port{Number: 81})},
}

func judged(endpoint uint64) model.Judgements {
	return model.JudgementsOf(model.Judgement{Baseline: "a", With: []string{"b"}, Held: []model.HeldDrop{{
		Reason: "r", Items: []model.HeldItem{{Kind: model.KindService, Namespace: "ns", Name: "n", Endpoints: []uint64{endpoint}}},
	}}})
}

func labels(pairs ...string) model.Labels {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	return model.MapOf(m)
}

func ports(name string, number uint32) model.Map[uint32] {
	return model.MapOf(map[string]uint32{name: number})
}

// fields calls yield for every field below v that is no struct of ours, with
// its path. A field of a type that has no samples fails the test, so that
// nobody can add one unseen.
func fields(t *testing.T, v reflect.Value, path string, yield func(path string, field reflect.Value)) {
	t.Helper()
	if _, ok := samples[v.Type()]; ok {
		yield(path, v)
		return
	}
	if v.Kind() != reflect.Struct {
		t.Fatalf("%s is a %s: add samples of it", path, v.Type())
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Field(i).CanSet() {
			t.Fatalf("%s.%s cannot be set from outside: add samples of %s", path, name, v.Type())
		}
		fields(t, v.Field(i), path+"."+name, yield)
	}
}

// full returns a copy of spec in which no field is zero.
func full(t *testing.T, spec model.Spec) reflect.Value {
	t.Helper()
	v := reflect.New(reflect.TypeOf(spec)).Elem()
	fields(t, v, "", func(_ string, field reflect.Value) {
		field.Set(reflect.ValueOf(samples[field.Type()][1]))
	})
	return v
}

// variants calls yield for every specification that differs from the full one
// in a single field.
func variants(t *testing.T, spec model.Spec, yield func(path string, same, other model.Spec)) {
	t.Helper()
	v := full(t, spec)
	same := v.Interface().(model.Spec)
	fields(t, v, "", func(path string, field reflect.Value) {
		for _, i := range []int{0, 2} {
			field.Set(reflect.ValueOf(samples[field.Type()][i]))
			yield(path, same, v.Interface().(model.Spec))
		}
		field.Set(reflect.ValueOf(samples[field.Type()][1]))
	})
}

func TestEveryFieldOfASpecificationIsContent(t *testing.T) {
	t.Parallel()
	for kind, spec := range specs {
		same := full(t, spec).Interface().(model.Spec)
		if again := full(t, spec).Interface().(model.Spec); !same.EqualSpec(again) {
			t.Errorf("%s: two of the same content differ", kind)
		}
		variants(t, spec, func(path string, same, other model.Spec) {
			if same.EqualSpec(other) || other.EqualSpec(same) {
				t.Errorf("%s: a change of %s goes unnoticed", kind, path)
			}
			a, b := model.Record{Spec: same}, model.Record{Spec: other}
			if a.SameContent(b) {
				t.Errorf("%s: a record does not notice a change of %s", kind, path)
			}
		})
	}
}

// The fields of a port are compared by ==, whatever is added to them.
func TestEveryFieldOfAPortIsContent(t *testing.T) {
	t.Parallel()
	v := reflect.New(reflect.TypeFor[model.Port]()).Elem()
	fields(t, v, "Port", func(path string, field reflect.Value) {
		before := model.ListOf(v.Interface().(model.Port))
		field.Set(reflect.ValueOf(samples[field.Type()][1]))
		if before.Equal(model.ListOf(v.Interface().(model.Port))) {
			t.Errorf("a change of %s goes unnoticed", path)
		}
	})
}

func TestSpecificationsOfDifferentTypesDiffer(t *testing.T) {
	t.Parallel()
	for kind, spec := range specs {
		for other, o := range specs {
			if got := spec.EqualSpec(o); got != (kind == other) {
				t.Errorf("%s equals %s: %t", kind, other, got)
			}
		}
		if spec.EqualSpec(nil) {
			t.Errorf("%s equals nothing at all", kind)
		}
	}
}

// Life and revision are the store's; everything else of the envelope is content.
func TestEveryFieldOfTheEnvelopeIsContent(t *testing.T) {
	t.Parallel()
	theStores := []string{".UID", ".Revision", ".Generation"}
	v := reflect.New(reflect.TypeFor[model.Record]()).Elem()
	for i := range v.NumField() {
		name := "." + v.Type().Field(i).Name
		if slices.Contains(theStores, name) || name == ".Spec" {
			continue
		}
		fields(t, v.Field(i), name, func(path string, field reflect.Value) {
			before := v.Interface().(model.Record)
			field.Set(reflect.ValueOf(samples[field.Type()][1]))
			after := v.Interface().(model.Record)
			if before.SameContent(after) || after.SameContent(before) {
				t.Errorf("a change of %s goes unnoticed", path)
			}
		})
	}
	record := v.Interface().(model.Record)
	later := record
	later.UID, later.Revision, later.Generation = model.UID{1}, 7, 3
	if !record.SameContent(later) {
		t.Error("another life of the same content differs")
	}
	later.Spec = model.SourceMark{}
	if record.SameContent(later) || later.SameContent(record) {
		t.Error("a record without a specification is the same as one with")
	}
}

// An instant is one whatever clock it was read from, and an empty list is one
// whatever made it.
func TestFormIsNoContent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	elsewhere := now.Round(0).In(time.FixedZone("", 3600))
	a := model.Record{Status: model.Status{Since: now}, Spec: model.Service{Meta: model.Meta{Created: now}}}
	b := model.Record{Status: model.Status{Since: elsewhere}, Spec: model.Service{
		Meta:  model.Meta{Created: elsewhere, Labels: model.MapOf(map[string]string{})},
		Hosts: model.ListOf([]string{}...),
	}}
	if !a.SameContent(b) || !b.SameContent(a) {
		t.Error("the same content in another form differs")
	}
	var decoded model.Service
	if err := json.Unmarshal([]byte(`{"hosts":[],"ports":null,"labels":{}}`), &decoded); err != nil {
		t.Fatal(err)
	}
	if !decoded.EqualSpec(model.Service{}) {
		t.Error("a decoded empty service differs from an empty one")
	}
}

package resource_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// novelty is a kind that Isthmus does not understand.
const novelty model.Kind = "Novelty"

// specs is the type of the specification of each kind.
var specs = map[model.Kind]reflect.Type{
	model.KindService:        reflect.TypeFor[model.Service](),
	model.KindEndpoint:       reflect.TypeFor[model.Endpoint](),
	model.KindWorkload:       reflect.TypeFor[model.Workload](),
	model.KindScope:          reflect.TypeFor[model.Scope](),
	model.KindConsumption:    reflect.TypeFor[model.Consumption](),
	model.KindSplit:          reflect.TypeFor[model.Split](),
	model.KindSource:         reflect.TypeFor[model.SourceMark](),
	model.KindHold:           reflect.TypeFor[model.Hold](),
	model.KindMergedService:  reflect.TypeFor[model.MergedService](),
	model.KindMergedEndpoint: reflect.TypeFor[model.MergedEndpoint](),
	novelty:                  reflect.TypeFor[model.Opaque](),
}

// A leaf is a type of which fields are made: three values of it, the zero value first, and
// others at random.
type leaf struct {
	samples [3]any
	draw    func(*rapid.T) any
}

func leafOf[V any](draw *rapid.Generator[V], samples ...V) leaf {
	return leaf{[3]any{samples[0], samples[1], samples[2]}, func(t *rapid.T) any { return draw.Draw(t, "value") }}
}

func textLeaf[S ~string]() leaf {
	return leafOf(rapid.Map(rapid.String(), func(s string) S { return S(s) }), "", "one", "two")
}

var paths = rapid.Map(rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9._-]{1,9}`), 0, 3), func(names []string) (p model.Path) {
	for _, name := range names {
		p = p.Via(name)
	}
	return p
})

var times = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "no time") {
		return time.Time{}
	}
	zone := time.FixedZone("", 60*rapid.IntRange(-12*60, 14*60).Draw(t, "zone"))
	first, last := time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
	return time.Unix(rapid.Int64Range(first.Unix(), last.Unix()).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")).In(zone)
})

// leaves are the types of fields. One that is in neither table fails the tests.
var leaves = map[reflect.Type]leaf{
	reflect.TypeFor[string]():           textLeaf[string](),
	reflect.TypeFor[model.Kind]():       textLeaf[model.Kind](),
	reflect.TypeFor[model.Location]():   textLeaf[model.Location](),
	reflect.TypeFor[model.Resolution](): textLeaf[model.Resolution](),
	reflect.TypeFor[model.Preference](): textLeaf[model.Preference](),
	reflect.TypeFor[model.Affinity]():   textLeaf[model.Affinity](),
	reflect.TypeFor[model.Health]():     textLeaf[model.Health](),
	reflect.TypeFor[model.Extent]():     textLeaf[model.Extent](),
	reflect.TypeFor[model.Path]():       leafOf(paths, "", "east", "east,west"),

	reflect.TypeFor[bool]():    leafOf(rapid.Bool(), false, true, false),
	reflect.TypeFor[uint32]():  leafOf(rapid.Uint32(), 0, 1, 2),
	reflect.TypeFor[int64]():   leafOf(rapid.Int64(), 0, 1, 2),
	reflect.TypeFor[uint64]():  leafOf(rapid.Uint64(), 0, 1, 1<<63),
	reflect.TypeFor[float64](): leafOf(rapid.Float64Range(0, 1), 0, 0.5, 0.25),

	reflect.TypeFor[model.UID](): leafOf(rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) model.UID { return model.UID(b) }),
		model.UID{}, model.UID{1}, model.UID{15: 1}),
	reflect.TypeFor[time.Duration](): leafOf(rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }), 0, time.Minute, -1),
	reflect.TypeFor[time.Time]():     leafOf(times, time.Time{}, time.Unix(1e9, 0), time.Unix(1e9, 1)),
	reflect.TypeFor[model.Labels](): leafOf(rapid.Map(rapid.MapOf(rapid.String(), rapid.String()), model.MapOf[string]),
		model.Labels{}, model.MapOf(map[string]string{"a": "1", "b": "2"}), model.MapOf(map[string]string{"a": "1", "b": "3"})),
	reflect.TypeFor[model.Map[uint32]](): leafOf(rapid.Map(rapid.MapOf(rapid.String(), rapid.Uint32()), model.MapOf[uint32]),
		model.Map[uint32]{}, model.MapOf(map[string]uint32{"http": 1}), model.MapOf(map[string]uint32{"web": 1})),
}

// lists make a list of a slice, by the type of the list. Slices need no row.
var lists = map[reflect.Type]reflect.Value{
	reflect.TypeFor[model.List[string]]():            reflect.ValueOf(model.ListOf[string]),
	reflect.TypeFor[model.List[model.Port]]():        reflect.ValueOf(model.ListOf[model.Port]),
	reflect.TypeFor[model.List[model.HoldItem]]():    reflect.ValueOf(model.ListOf[model.HoldItem]),
	reflect.TypeFor[model.List[model.ServiceName]](): reflect.ValueOf(model.ListOf[model.ServiceName]),
	reflect.TypeFor[model.Judgements]():              reflect.ValueOf(model.JudgementsOf),
}

// sliceOf returns the type of the slice that a list or slice of type is made of, and how.
func sliceOf(of reflect.Type) (slice reflect.Type, made func(reflect.Value) reflect.Value, ok bool) {
	if of.Kind() == reflect.Slice {
		return of, func(v reflect.Value) reflect.Value { return v }, true
	}
	f, ok := lists[of]
	if !ok {
		return nil, nil, false
	}
	return f.Type().In(0), func(v reflect.Value) reflect.Value { return f.CallSlice([]reflect.Value{v})[0] }, true
}

// A variant is a value that differs from the first one of its type in the field at path.
type variant struct {
	path  string
	value reflect.Value
}

// variants returns values of a type: the first has no zero field, and each of the others
// differs from it in one.
func variants(t testing.TB, of reflect.Type) []variant {
	t.Helper()
	if l, ok := leaves[of]; ok {
		var all []variant
		for _, i := range []int{1, 0, 2} {
			all = append(all, variant{"", reflect.ValueOf(l.samples[i])})
		}
		return all
	}
	if slice, made, ok := sliceOf(of); ok {
		return listVariants(t, slice, made)
	}
	if of.Kind() != reflect.Struct {
		t.Fatalf("%s is neither in leaves nor in lists: add it", of)
	}
	return structVariants(t, of)
}

func listVariants(t testing.TB, slice reflect.Type, made func(reflect.Value) reflect.Value) []variant {
	t.Helper()
	items := variants(t, slice.Elem())
	list := func(items ...reflect.Value) reflect.Value {
		return made(reflect.Append(reflect.MakeSlice(slice, 0, 0), items...))
	}
	first, last := items[0].value, items[len(items)-1].value
	all := []variant{{"", list(first)}, {"", list()}, {"", list(first, last)}, {"", list(last, first)}}
	for _, item := range items[1:] {
		all = append(all, variant{"[0]" + item.path, list(item.value)})
	}
	return all
}

func structVariants(t testing.TB, of reflect.Type) []variant {
	t.Helper()
	full := reflect.New(of).Elem()
	all := []variant{{"", full}}
	for field := range of.Fields() {
		if !field.IsExported() {
			t.Fatalf("%s.%s is not exported: add %s to leaves or lists", of, field.Name, of)
		}
		full.FieldByIndex(field.Index).Set(variants(t, field.Type)[0].value)
	}
	for field := range of.Fields() {
		for _, v := range variants(t, field.Type)[1:] {
			other := reflect.New(of).Elem()
			other.Set(full)
			other.FieldByIndex(field.Index).Set(v.value)
			all = append(all, variant{"." + field.Name + v.path, other})
		}
	}
	return all
}

// draw returns any value of a type.
func draw(t *rapid.T, of reflect.Type) reflect.Value {
	if l, ok := leaves[of]; ok {
		return reflect.ValueOf(l.draw(t))
	}
	if slice, made, ok := sliceOf(of); ok {
		items := reflect.MakeSlice(slice, 0, 0)
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			items = reflect.Append(items, draw(t, slice.Elem()))
		}
		return made(items)
	}
	v := reflect.New(of).Elem()
	for i := range of.NumField() {
		v.Field(i).Set(draw(t, of.Field(i).Type))
	}
	return v
}

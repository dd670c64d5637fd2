package resource_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
)

// appendsItsMessage fails unless Append appends the encoded message of a record.
func appendsItsMessage(t rapid.TB, r model.Record) {
	t.Helper()
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(resource.Message(&r))
	if err != nil {
		t.Fatal(err)
	}
	got, err := resource.Append([]byte("before"), &r)
	if err != nil {
		t.Fatal(err)
	}
	if rest, ok := bytes.CutPrefix(got, []byte("before")); !ok || !bytes.Equal(rest, want) {
		t.Fatalf("%#v\nis appended as\n%q\nits message is\n%q", r, got, want)
	}
}

func TestAnyRecordIsAppendedAsItsMessage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { appendsItsMessage(t, drawRecord(t)) })
}

// Endpoints are written field by field. A field that is forgotten there fails here, also a new
// one.
func TestEveryFieldOfAnEndpointIsAppended(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.Kind{model.KindEndpoint, model.KindMergedEndpoint} {
		for _, v := range variants(t, specs[kind]) {
			appendsItsMessage(t, model.Record{Ref: refTo(model.Ref{Kind: kind}), Spec: v.value.Interface().(model.Spec)})
		}
		for _, v := range variants(t, reflect.TypeFor[envelope]()) {
			r := v.value.Interface().(envelope).record()
			r.Kind = kind
			r.Spec = reflect.Zero(specs[kind]).Interface().(model.Spec)
			appendsItsMessage(t, r)
			r.Spec = model.Split{} // of another kind
			appendsItsMessage(t, r)
		}
	}
}

// A length takes one byte more from 128 on, and another one from 16,384 on.
func TestEndpointsOfAnyLengthAreAppended(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 100, 126, 127, 128, 129, 1000, 16_382, 16_383, 16_384, 1 << 21} {
		e := model.Endpoint{Labels: model.MapOf(map[string]string{"a": strings.Repeat("x", size), "b": "", "": "c"})}
		appendsItsMessage(t, model.Record{Ref: model.Ref{Kind: model.KindEndpoint}, Spec: e})
		appendsItsMessage(t, model.Record{Ref: refTo(model.Ref{Kind: model.KindMergedEndpoint}), Spec: model.MergedEndpoint{Endpoint: e}})
	}
}

func TestAnEndpointWithBytesThatAreNoTextIsAppended(t *testing.T) {
	t.Parallel()
	appendsItsMessage(t, model.Record{
		Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{Name: "n\xff"}}, Place: "dir/\xff\xfe.yaml",
		Spec: model.Endpoint{Address: "10.0.0.1", Labels: model.MapOf(map[string]string{"a": "\xff"})},
	})
}

func TestAppendingAnEndpointTakesNoAllocation(t *testing.T) {
	buffer := make([]byte, 0, 1<<10)
	if got := testing.AllocsPerRun(100, func() { buffer, _ = resource.Append(buffer[:0], &instance) }); got > 0 {
		t.Errorf("an endpoint takes %v allocations", got)
	}
}

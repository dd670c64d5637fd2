package istio_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// decodedValue is anything that comes out of JSON, as a client of an API server
// decodes it.
func decodedValue() *rapid.Generator[any] {
	var value *rapid.Generator[any]
	value = rapid.Custom(func(t *rapid.T) any {
		return rapid.OneOf(
			rapid.Just[any](nil),
			rapid.Just[any](map[string]any(nil)),
			rapid.Just[any]([]any(nil)),
			rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e25, 1e25).AsAny(),
			rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value }), 0, 3).AsAny(),
			rapid.MapOfN(rapid.String(), rapid.Deferred(func() *rapid.Generator[any] { return value }), 0, 3).AsAny(),
		).Draw(t, "value")
	})
	return value
}

func TestAppendDecodedIsEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := decodedValue().Draw(t, "value")
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := istio.AppendDecoded(nil, value); string(got) != string(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

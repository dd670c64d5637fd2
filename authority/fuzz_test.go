package authority

import (
	"bytes"
	"testing"
	"time"
)

// A file of tokens that is read is written again without a loss.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"tokens": [{"id": "A", "namespace": "shop", "account": "web", "addresses": ["10.0.0.0/24"], "issued": "2026-01-01T00:00:00Z", "expires": "2026-02-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"tokens": null} {}`))
	f.Add([]byte(`{"tokens": [{"id": ""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseTokens(text)
		if err != nil {
			return
		}
		first, err := list.encode(time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTokens(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := again.encode(time.Time{}); err != nil || !bytes.Equal(first, second) || len(again.Tokens) != len(list.Tokens) {
			t.Errorf("%s is written as %s: %v", first, second, err)
		}
	})
}

package spiffe_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

func TestPatternsOfIdentities(t *testing.T) {
	t.Parallel()
	const id = "spiffe://cluster.local/ns/shop/sa/cart"
	for pattern, want := range map[string]bool{
		id: true, "spiffe://*/ns/*/sa/*": true, "spiffe://cluster.local/ns/shop/sa/*": true, "spiffe://cluster.local/ns/*/sa/cart": true,
		"spiffe://cluster.local/ns/bank/sa/*": false, "spiffe://other.example/ns/*/sa/*": false, "spiffe://*/ns/*/sa/carts": false,
	} {
		if err := spiffe.CheckPattern(pattern); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		if got := spiffe.Matches(pattern, id); got != want {
			t.Errorf("%s includes %s: %t", pattern, id, got)
		}
		if spiffe.Matches(pattern, "") {
			t.Errorf("%s includes no identity at all", pattern)
		}
	}
	for _, bad := range []string{
		"", "*", "spiffe://*", "spiffe://cluster.local/ns/shop", "spiffe://cluster.local/ns/shop/sa/cart/x", "http://cluster.local/ns/shop/sa/cart",
		"spiffe://cluster.local/ns/Shop/sa/cart", "spiffe://cluster.local/ns/s*/sa/cart", "spiffe:///ns/shop/sa/cart", "spiffe://cluster.local/ns/shop/sa/c*",
	} {
		if spiffe.CheckPattern(bad) == nil {
			t.Errorf("%q is taken for a pattern", bad)
		}
	}
}

package compose

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
)

// The number of objects follows the number of endpoints, but not every step.
func TestShardsHaveSlack(t *testing.T) {
	for _, test := range []struct{ endpoints, present, want int }{
		{0, 0, 1},
		{100, 0, 1},
		{101, 0, 2},
		{101, 1, 2},
		{400, 2, 4},
		{199, 4, 4},
		{101, 4, 4},
		{100, 4, 1},
		{60, 2, 2},
		{50, 2, 1},
		{1, 64, 1},
		{350, 3, 4},
	} {
		if got := shardsFor(test.endpoints, 100, test.present); got != test.want {
			t.Errorf("%d endpoints in %d objects: now %d, want %d", test.endpoints, test.present, got, test.want)
		}
	}
}

// Kubernetes takes the name of every object, and no two hosts share one.
func TestNamesAreNamesAndOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9*._-]{1,60}`), 1, 8, rapid.ID).Draw(t, "hosts")
		hosts = append(hosts, strings.Repeat("a.", 120)+"b", "*.a", "a", "A")
		given := map[string]string{}
		for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
			for _, name := range []string{NameOf(host), partName(host, "80,#0"), partName(host, "80,#1")} {
				if !names.IsObjectName(name) {
					t.Fatalf("%q is named %q", host, name)
				}
				if other, taken := given[name]; taken {
					t.Fatalf("%q and %q are both named %q", other, host, name)
				}
				given[name] = host
			}
		}
	})
}

package supervise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostKinds bounds the kinds that are remembered as logged. The names are foreign text.
const mostKinds = 100

// ignoredKinds are the kinds without effect that were logged, each once.
type ignoredKinds map[string]bool

// fresh returns the kinds that were not logged before, with their counts, such as
// "2 VirtualService, 1 Gateway".
func (k ignoredKinds) fresh(counts map[string]int) string {
	var found []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if !k[kind] && len(k) < mostKinds {
			k[kind] = true
			found = append(found, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	return strings.Join(found, ", ")
}

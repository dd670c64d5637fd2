package istio

import (
	"strconv"
	"testing"
)

// BenchmarkTranslate is what a change of a service costs before anything is
// written: its objects, and the fingerprints by which they are compared.
func BenchmarkTranslate(b *testing.B) {
	for _, instances := range []int{10, 1000, 20_000} {
		b.Run(strconv.Itoa(instances), func(b *testing.B) {
			s, c := fleetOf(instances, map[string]string{"app": "a", "version": "v1"}), DefaultConfig()
			for b.Loop() {
				for _, o := range c.Translate("test", s, func(string) bool { return false }).Objects {
					o.fingerprint()
				}
			}
		})
	}
}

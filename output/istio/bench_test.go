package istio

import (
	"encoding/json"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// BenchmarkTranslate is what a change of a service costs before anything is
// written: its objects, and the fingerprints by which they are compared.
func BenchmarkTranslate(b *testing.B) {
	for _, instances := range []int{10, 1000, 20_000} {
		b.Run(strconv.Itoa(instances), func(b *testing.B) {
			s, c := shop.Fleet(instances, map[string]string{"app": "a", "version": "v1"}), DefaultConfig()
			for b.Loop() {
				for _, o := range c.Translate("test", s, func(string) bool { return false }).Objects {
					o.Fingerprint()
				}
			}
		})
	}
}

// BenchmarkObserve is what an object costs that the API server tells of, beyond
// its decoding.
func BenchmarkObserve(b *testing.B) {
	c := DefaultConfig()
	c.ShardSize = 2000
	o := c.Translate("test", shop.Fleet(1000, map[string]string{"app": "a", "version": "v1"}), func(string) bool { return false }).Objects[0]
	text, err := json.Marshal(o.Manifest())
	if err != nil {
		b.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(object.Observe(object.ServiceEntry, u).Members) != 1000 {
			b.Fatal("lost")
		}
	}
}

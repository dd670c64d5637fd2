package xds

import (
	"fmt"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// A first request that names what is stored is none that servers reject for its size.
func TestFirstRequestIsNoLargerThanServersTake(t *testing.T) {
	for _, length := range []int{10, 200} {
		names := map[string]bool{}
		for n := 0; ; n += 5000 {
			for i := range 5000 {
				names[fmt.Sprintf("shop/%s-%d", strings.Repeat("a", length), n+i)] = true
			}
			versions := unversioned(names)
			size := proto.Size(&discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: versions})
			if size > 4<<20-100_000 {
				t.Fatalf("%d names make a request of %d bytes", len(names), size)
			}
			if versions == nil {
				break
			}
		}
		if len(names) < 10_000 {
			t.Errorf("%d names are too many", len(names))
		}
	}
}

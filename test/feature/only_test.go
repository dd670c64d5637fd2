package feature_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// A source that a reload confines loses at once what it may not have any more, without a
// hold and without a word of the registry, and it shows what it rejects; a wider
// configuration brings it back.
func TestAConfinedSourceServesItsHostsOnly(t *testing.T) {
	t.Parallel()
	other, shop := newRegistry(t, "other"), newRegistry(t, "shop")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	o := entry{name: "other", from: other}
	r := startReloading(t, o, entry{name: "shop", from: shop})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))

	r.Configure(o, entry{name: "shop", from: shop, only: reviews})
	r.envoy.AwaitHeld(xdsclient.CDS, cluster(reviews))
	r.AwaitRejected("shop", `Service shop/ratings at shop.yaml: : the source is confined to the hosts `+reviews+` by its only.hosts, and "`+ratings+`" is none of them`)
	r.AwaitSource("shop", "live", "")
	r.Configure(o, entry{name: "shop", from: shop})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
}

package feature_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestSidecarNarrowsWhatANamespaceSees(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "reviews", "ratings")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[1])})
	isthmus := start(t, files)
	both := []*calls.Client{dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")}
	other := dial(t, isthmus, ratings+":80", "elsewhere")
	both[0].AwaitAnswers("reviews")
	both[1].AwaitAnswers("ratings")
	traffic := []*calls.Traffic{both[0].KeepCalling(), other.KeepCalling()}
	other.AwaitAnswers("ratings")

	files.Write("sidecar.yaml", sidecar{Name: "default", Hosts: "[./" + reviews + "]"})
	both[1].AwaitFailure(ratings + ":80")
	both[0].AwaitAnswers("reviews")
	files.Write("sidecar.yaml", sidecar{Name: "default", Hosts: `["*/*"]`})
	both[1].AwaitAnswers("ratings")

	// A default for all namespaces, from which a namespace's own departs.
	files.Write("root.yaml", sidecar{Name: "default", Namespace: "istio-system", Hosts: `["*/` + ratings + `"]`})
	nowhere := dial(t, isthmus, ratings+":80", "")
	nowhere.AwaitAnswers("ratings")
	files.Remove("sidecar.yaml")
	both[1].AwaitAnswers("ratings")
	traffic[0].Stop()
	both[0].AwaitFailure(reviews + ":80")
	files.Remove("root.yaml")
	both[0].AwaitAnswers("reviews")
	traffic[1].MustNotHaveFailed()
}

// TestVersionsOfAnApplicationSeeDifferentServices has the most specific of
// several Sidecars count.
func TestVersionsOfAnApplicationSeeDifferentServices(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "reviews", "ratings")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[1])})
	files.Write("sidecars.yaml",
		sidecar{Name: "default", Hosts: "[./" + reviews + "]"},
		sidecar{Name: "new", Selector: "{app: cart, version: v2}", Hosts: "[shop/" + ratings + "]"})
	isthmus := start(t, files)
	watch := func(version string) *xdsclient.Client {
		node := xdsclient.Node("cart-"+version, "shop", "envoy")
		node.Metadata.Fields["LABELS"] = labels("app", "cart", "version", version)
		c := xdsclient.NewDelta(t, channel(t, isthmus), xdsclient.Config{Node: node})
		c.Subscribe(xdsclient.CDS)
		return c
	}
	first, second := watch("v1"), watch("v2")
	first.AwaitHeld(xdsclient.CDS, cluster(reviews))
	second.AwaitHeld(xdsclient.CDS, cluster(ratings))

	files.Write("sidecars.yaml", sidecar{Name: "new", Selector: "{app: cart}", Hosts: "[\"*/" + ratings + "\"]"})
	first.AwaitHeld(xdsclient.CDS, cluster(ratings))
	second.AwaitHeld(xdsclient.CDS, cluster(ratings))
	files.Remove("sidecars.yaml")
	first.AwaitHeld(xdsclient.CDS, cluster(ratings), cluster(reviews))
	second.AwaitHeld(xdsclient.CDS, cluster(ratings), cluster(reviews))
}

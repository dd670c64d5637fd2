package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

// ratings is another service, which goes on whatever becomes of reviews.
const ratings = "ratings.shop.example"

func TestBadDocumentIsRejectedWhileItsLastGoodVersionServes(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "ratings")
	good := service{Host: reviews, Endpoints: endpoints(b[0])}
	other := service{Host: ratings}
	files.Write("shop.yaml", good, other)
	isthmus := start(t, files)
	client, beside := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")
	client.AwaitAnswers("one")
	traffic := client.KeepCalling()

	// What stands beside it in the same file is followed.
	bad := strings.Replace(good.String(), "number: 80", "number: 80000", 1)
	other.Endpoints = endpoints(b[2])
	files.Write("shop.yaml", bad, other)
	beside.AwaitAnswers("ratings")
	isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at shop.yaml:6: spec.ports[0].number: 80000 is not a port: use 1 to 65535")
	isthmus.AwaitSource("files", "live", "")
	isthmus.AwaitService(reviews, func(s admin.Service) error {
		if len(s.Records) != 1 || !strings.Contains(s.Records[0].Stale, "80000 is not a port") {
			return fmt.Errorf("the admin API shows records %+v", s.Records)
		}
		return nil
	})
	client.AwaitAnswers("one")

	// Once fixed it is followed again.
	good.Endpoints = endpoints(b[1])
	files.Write("shop.yaml", good, other)
	client.AwaitAnswers("two")
	isthmus.AwaitRejected("files")
	traffic.MustNotHaveFailed()
}

func TestUnreadableFileKeepsWhatItHeld(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "ratings")
	files.Write("a.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	files.Write("b.yaml", service{Host: ratings})
	isthmus := start(t, files)
	client, beside := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	files.Write("a.yaml", "kind: ServiceEntry\n  spec: [")
	isthmus.AwaitRejected("files", "at a.yaml:2: : not YAML")
	files.Write("b.yaml", service{Host: ratings, Endpoints: endpoints(b[2])})
	beside.AwaitAnswers("ratings")
	client.AwaitAnswers("one")

	// An object that moved out of the broken file is where it is now.
	files.Write("c.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	isthmus.Settle()
	client.AwaitAnswers("one") // until somebody fixes or removes the first
	files.Remove("a.yaml")
	client.AwaitAnswers("two")
	isthmus.AwaitRejected("files")
	calls.MustNotHaveFailed()
}

// TestObjectThatMovedWhileItWasBadGoesWithWhereItIs has an object's last good
// version stand in one file and the bad document in another.
func TestObjectThatMovedWhileItWasBadGoesWithWhereItIs(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "ratings")
	good, other := service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[1])}
	bad := strings.Replace(good.String(), "number: 80", "number: 80000", 1)
	files.Write("a.yaml", good, other)
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")

	files.Write("b.yaml", bad)
	isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at b.yaml:1: ")
	files.Write("a.yaml", other)
	isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at b.yaml:6: spec.ports[0].number: ")
	client.AwaitAnswers("one")
	files.Write("b.yaml", "# all done")
	isthmus.AwaitRejected("files")
	client.AwaitFailure(reviews + ":80")
}

func TestDocumentThatWasNeverGoodIsRejectedAlone(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml",
		service{Host: reviews, Endpoints: endpoints(one)},
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: typo}\nspec:\n  host: [typo.example]\n",
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: Bad_Name}\nspec: {}\n",
		"just text",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
		service{Host: "wrong.example", Resolution: "STATIC", Endpoints: []string{"{address: name.example}"}})
	isthmus := start(t, files)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("one")
	isthmus.AwaitRejected("files",
		"at shop.yaml:21: metadata.name: \"Bad_Name\" cannot be an object's name",
		"at shop.yaml:25: : a document must be a map",
		"ServiceEntry default/typo at shop.yaml:16: spec.host: unknown field: did you mean hosts?",
		"ServiceEntry shop/wrong at shop.yaml:40: spec.endpoints[0].address: \"name.example\" is not an IP address",
	)
	if got := fmt.Sprint(isthmus.Source("files").Ignored); got != "map[ConfigMap:1]" {
		t.Errorf("the admin API shows %s to be left out", got)
	}
}

func TestWhoHasANameKeepsItAndTheOtherIsRejected(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("b.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("two")
	traffic := client.KeepCalling()

	files.Write("c.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at c.yaml:1: ")
	client.AwaitAnswers("two")
	files.Move("c.yaml", "a.yaml")
	isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at a.yaml:1: ")
	client.AwaitAnswers("two")
	files.Remove("b.yaml")
	client.AwaitAnswers("one")
	isthmus.AwaitRejected("files")
	traffic.MustNotHaveFailed()
}

package feature_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestEachNamespaceSeesItsOwnServiceOfAHost(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	b := startBackends(t, "north", "south", "south-too")
	in := func(namespace string, backends ...*backend) service {
		return service{Host: reviews, Namespace: namespace, Endpoints: endpoints(backends...)}
	}
	second.Write("north.yaml", in("north", b[0]))
	first.Write("south.yaml", in("south", b[1]))
	first.Write("stays.yaml", service{Host: "stays.shop.example", Namespace: "south", Endpoints: endpoints(b[1])}) // so that not everything goes, which would be held
	isthmus := start(t, first, second)
	north, south := dial(t, isthmus, reviews+":80", "north"), dial(t, isthmus, reviews+":80", "south")
	elsewhere, nowhere := dial(t, isthmus, reviews+":80", "elsewhere"), dial(t, isthmus, reviews+":80", "")
	north.AwaitAnswers("north")
	south.AwaitAnswers("south")
	elsewhere.AwaitAnswers("south") // whose source comes first
	nowhere.AwaitAnswers("south")
	list, err := isthmus.Services(reviews)
	if len(list) != 2 || err != nil {
		t.Errorf("the admin API shows %d services of the host: %v", len(list), err)
	}
	traffic := []*calls.Traffic{north.KeepCalling(), south.KeepCalling(), elsewhere.KeepCalling(), nowhere.KeepCalling()}

	first.Write("south.yaml", in("south", b[1], b[2]))
	south.AwaitAnswers("south", "south-too")
	elsewhere.AwaitAnswers("south", "south-too")
	north.AwaitAnswers("north")

	// Without a service of its own a namespace sees that of others.
	first.Remove("south.yaml")
	for _, c := range []*calls.Client{south, elsewhere, nowhere} {
		c.AwaitAnswers("north")
	}
	first.Write("south.yaml", in("south", b[1]))
	south.AwaitAnswers("south")
	elsewhere.AwaitAnswers("south")
	north.AwaitAnswers("north")

	// One that is hidden does not hide that of another namespace.
	hidden := in("south", b[1])
	hidden.ExportTo = "[.]"
	first.Write("south.yaml", hidden)
	elsewhere.AwaitAnswers("north")
	nowhere.AwaitAnswers("north")
	south.AwaitAnswers("south")
	for _, c := range traffic {
		c.MustNotHaveFailed()
	}
}

func TestServiceIsHiddenFromNamespacesItIsNotExportedTo(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	exported := func(to string) service {
		return service{Host: reviews, ExportTo: to, Endpoints: endpoints(one)}
	}
	files.Write("shop.yaml", exported("[.]"))
	isthmus := start(t, files)
	inside, outside := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, reviews+":80", "outside")
	nowhere := dial(t, isthmus, reviews+":80", "")
	inside.AwaitAnswers("one")
	traffic := inside.KeepCalling()

	files.Write("shop.yaml", exported("[outside, .]"))
	outside.AwaitAnswers("one")
	files.Write("shop.yaml", exported("['*']"))
	nowhere.AwaitAnswers("one")

	// A client that saw it gets the removal at once.
	files.Write("shop.yaml", exported("[.]"))
	outside.AwaitFailure(reviews + ":80")
	nowhere.AwaitFailure(reviews + ":80")
	isthmus.Settle()
	traffic.MustNotHaveFailed()

	files.Write("shop.yaml", exported("[\"~\"]"))
	inside.AwaitFailure(reviews + ":80")
}

// TestClientOfAnUnknownServiceFailsForThatReason has a client that never saw
// the service. It gets no answer at once; that gRPC waits 15 s before it
// gives up on it is gRPC's way.
func TestClientOfAnUnknownServiceFailsForThatReason(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, ExportTo: "[.]", Endpoints: endpoints(one)})
	isthmus := start(t, files)
	outsider := dial(t, isthmus, reviews+":80", "outside")
	await(t, "an answer to the client", func() error { return isthmus.acked(outsider, xdsclient.LDS, 0) })
	outsider.AwaitFailure("has been removed")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	outsider.AwaitAnswers("one")
}

// A name that names a namespace is that namespace's, for gRPC as well: while its service is
// deleted and created again, and while another namespace of an earlier source claims the name.
func TestCallsGoToTheNamespaceInTheName(t *testing.T) {
	t.Parallel()
	const host = "reviews.prod.svc.cluster.local"
	earlier, later := newRegistry(t, "earlier"), newRegistry(t, "later")
	b := startBackends(t, "real", "evil", "other")
	stays := service{Host: "stays.example", Namespace: "prod", Endpoints: endpoints(b[2])}
	theirs := service{Host: host, Namespace: "prod", Endpoints: endpoints(b[0])}
	earlier.Write("stays.yaml", stays)
	later.Write("stays.yaml", stays) // so that not everything goes, which would be held
	later.Write("real.yaml", theirs)
	isthmus := start(t, earlier, later)
	third, own := dial(t, isthmus, host+":80", "third"), dial(t, isthmus, host+":80", "prod")
	third.AwaitAnswers("real")
	own.AwaitAnswers("real")

	earlier.Write("evil.yaml", service{Host: host, Namespace: "aaa-evil", Endpoints: endpoints(b[1])})
	dial(t, isthmus, host+":80", "aaa-evil").AwaitAnswers("evil")
	calls := b[1].Calls()
	for range 2 {
		third.AwaitAnswers("real")
		own.AwaitAnswers("real")
		later.Remove("real.yaml")
		third.AwaitAnyFailure()
		own.AwaitAnyFailure()
		later.Write("real.yaml", theirs)
	}
	third.AwaitAnswers("real")
	own.AwaitAnswers("real")
	if n := b[1].Calls() - calls; n != 0 {
		t.Errorf("%d calls went to the namespace aaa-evil", n)
	}
}

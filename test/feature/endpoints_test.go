package feature_test

import (
	"fmt"
	"testing"
)

const reviews = "reviews.shop.example"

func TestCallsReachEveryInstanceOfAServiceEntry(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(startBackends(t, "one", "two", "three")...)})
	client := dial(t, start(t, files), reviews+":80", "shop")
	client.AwaitAnswers("one", "two", "three")
}

func TestServiceEntryMayHaveSeveralHosts(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews + ", " + ratings, Endpoints: endpoints(b[0])})
	isthmus := start(t, files)
	first, second := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")
	first.AwaitAnswers("one")
	second.AwaitAnswers("one")
	calls := first.KeepCalling()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	first.AwaitAnswers("two")
	second.AwaitFailure(ratings + ":80")
	calls.MustNotHaveFailed()
}

func TestInstancesComeAndGoWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "three")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0], b[1])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one", "two")
	traffic := client.KeepCalling()

	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b...)})
	client.AwaitAnswers("one", "two", "three")

	// An instance leaves the registry first and stops once clients have accepted that.
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1], b[2])})
	isthmus.Settle()
	b[0].Stop()
	client.AwaitAnswers("two", "three")

	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[2])})
	isthmus.Settle()
	b[1].Stop()
	client.AwaitAnswers("three")
	traffic.MustNotHaveFailed()
}

func TestEveryWeightAndLocalityGetsCalls(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "heavy", "plain", "west", "nowhere")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{
		b[0].Endpoint("locality: north/a/1", "weight: 3"),
		b[1].Endpoint("locality: north/a/1"),
		b[2].Endpoint("locality: west", "weight: 2"),
		b[3].Endpoint(),
	}})
	isthmus := start(t, files)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("heavy", "plain", "west", "nowhere")

	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{
		b[0].Endpoint("locality: west", "weight: 4000000000"),
		b[1].Endpoint("locality: east", "weight: 4000000000"),
	}})
	dial(t, isthmus, reviews+":80", "").AwaitAnswers("heavy", "plain")
}

func TestCallsGoToThePortThatTheInstanceListensOn(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "own", "target", "same")
	files.Write("shop.yaml", service{
		Host: reviews,
		Ports: fmt.Sprintf(`[{number: 80, name: grpc, protocol: GRPC}, {number: 81, name: other, protocol: HTTP, targetPort: %d},
    {number: %d, name: same, protocol: TCP}]`, b[1].Addr.Port, b[2].Addr.Port),
		Endpoints: []string{b[0].Endpoint()}, // its own port for the port named grpc
	})
	isthmus := start(t, files)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("own")
	dial(t, isthmus, reviews+":81", "shop").AwaitAnswers("target")
	dial(t, isthmus, fmt.Sprintf("%s:%d", reviews, b[2].Addr.Port), "shop").AwaitAnswers("same")
}

func TestInstancesMayHaveIPv6Addresses(t *testing.T) {
	t.Parallel()
	six, err := listenBackend(t, "six", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	files, four := newRegistry(t, "files"), startBackend(t, "four")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(six, four)})
	dial(t, start(t, files), reviews+":80", "shop").AwaitAnswers("six", "four")
}

func TestServiceThatLosesAllInstancesComesBack(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	files.Write("stays.yaml", service{Host: ratings, Endpoints: endpoints(b[0])}) // the last one would be held
	client := dial(t, start(t, files), reviews+":80", "shop")
	client.AwaitAnswers("one")

	files.Write("shop.yaml", service{Host: reviews})
	client.AwaitFailure("no targets")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")

	files.Remove("shop.yaml")
	client.AwaitFailure(reviews + ":80")
	files.Write("other.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	client.AwaitAnswers("one")
}

func TestPortsOfAServiceComeAndGo(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	ports := func(list string) service {
		return service{Host: reviews, Ports: list, Endpoints: endpoints(one)}
	}
	files.Write("shop.yaml", ports("[{number: 80, name: grpc, protocol: GRPC}]"))
	isthmus := start(t, files)
	first, second := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, reviews+":90", "shop")
	first.AwaitAnswers("one")
	traffic := first.KeepCalling()

	files.Write("shop.yaml", ports("[{number: 80, name: web, protocol: HTTP, targetPort: "+one.Port()+"}, {number: 90, name: grpc, protocol: GRPC}]"))
	second.AwaitAnswers("one")
	traffic.MustNotHaveFailed()

	files.Write("shop.yaml", ports("[{number: 90, name: grpc, protocol: GRPC}]"))
	first.AwaitFailure(reviews + ":80")
	second.AwaitAnswers("one")
}

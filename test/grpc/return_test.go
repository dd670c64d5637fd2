package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestServiceThatReturnsIsFound has a service go and come back exactly as it was.
// A client of grpc-node finds it only because it is answered otherwise: see the
// reference.
func TestServiceThatReturnsIsFound(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		isthmus, client, back := withTwoServices(t, impl)
		isthmus.Remove(ratings)
		failed := client.AwaitFailure(ratings + ":80")
		back()
		made := client.MustNotHaveFailed(reviews + ":80")
		t.Logf("%d calls; the service that was gone failed %s", made, failed)
	})
}

// TestServiceThatGoesInAnOutageIsFound has a service go while Isthmus is down, and
// come back exactly as it was once clients know. With grpc-java the channel to that
// service ends in an exception of its own as soon as it knows, so that is as far as
// it is followed: see the reference.
func TestServiceThatGoesInAnOutageIsFound(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		isthmus, client, back := withTwoServices(t, impl)
		isthmus.Kill()
		isthmus.Remove(ratings)
		isthmus.Start()
		client.AwaitFailure(ratings + ":80")
		if impl.Name != clients.Java {
			back()
		}
		client.MustNotHaveFailed(reviews + ":80")
	})
}

// withTwoServices starts an Isthmus with two services, and a client that calls both.
// Back puts back the second, and waits until the client is answered by it.
func withTwoServices(t *testing.T, impl clients.Implementation) (isthmus *isthmus, client *client, back func()) {
	t.Helper()
	b := startBackends(t, "one", "two")
	isthmus = newIsthmus(t)
	isthmus.Write(reviews, b[0])
	isthmus.Write(ratings, b[1])
	isthmus.Start()
	client = dial(t, impl, isthmus, reviews+":80", ratings+":80")
	client.AwaitAnswers(reviews+":80", "one")
	client.AwaitAnswers(ratings+":80", "two")
	return isthmus, client, func() {
		t.Helper()
		isthmus.Write(ratings, b[1])
		client.AwaitAnswers(ratings+":80", "two")
	}
}

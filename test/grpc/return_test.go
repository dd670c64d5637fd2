package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestServiceThatReturnsIsFound has a service go and come back exactly as it was,
// once while clients are told so, and once while Isthmus is down. A client of
// grpc-node finds it only because it is told otherwise: see the reference.
func TestServiceThatReturnsIsFound(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one", "two")
		isthmus := newIsthmus(t)
		isthmus.Write(reviews, b[0])
		isthmus.Write(ratings, b[1])
		isthmus.Start()
		client := dial(t, impl, isthmus, reviews+":80", ratings+":80")
		client.AwaitAnswers(reviews+":80", "one")
		client.AwaitAnswers(ratings+":80", "two")

		isthmus.Remove(ratings)
		gone := client.AwaitFailure(ratings + ":80")
		isthmus.Write(ratings, b[1])
		client.AwaitAnswers(ratings+":80", "two")

		isthmus.Kill()
		isthmus.Remove(ratings)
		isthmus.Start()
		again := client.AwaitFailure(ratings + ":80")
		isthmus.Write(ratings, b[1])
		client.AwaitAnswers(ratings+":80", "two")

		made := client.MustNotHaveFailed(reviews + ":80")
		t.Logf("%d calls; the service that was gone failed %s, and %s", made, gone, again)
	})
}

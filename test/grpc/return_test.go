package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestServiceThatReturnsIsFound has a service go and come back exactly as it was.
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
		failed := client.AwaitFailure(ratings + ":80")
		isthmus.Write(ratings, b[1])
		client.AwaitAnswers(ratings+":80", "two")

		made := client.MustNotHaveFailed(reviews + ":80")
		t.Logf("%d calls; the service that was gone failed %s", made, failed)
	})
}

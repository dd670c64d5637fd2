package grpc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

const (
	reviews = "reviews.example.com"
	ratings = "ratings.example.com"
)

// TestCallsFollowTheEndpoints has an endpoint come and one go, under a steady
// stream of calls. The backend of the latter is stopped a second after it was used
// for the last time and not before, for gRPC avoids a backend that shuts down
// gracefully even if its endpoint is still there.
func TestCallsFollowTheEndpoints(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one", "two", "three")
		isthmus := newIsthmus(t)
		isthmus.Write(reviews, b[0], b[1])
		isthmus.Start()
		client := dial(t, impl, isthmus, reviews+":80")
		client.AwaitAnswers(reviews+":80", "one", "two")

		came := time.Now()
		isthmus.Write(reviews, b...)
		client.AwaitAnswers(reviews+":80", "one", "two", "three")

		went := time.Now()
		isthmus.Write(reviews, b[1:]...)
		client.AwaitAnswers(reviews+":80", "two", "three") // in 50 calls: that is a second
		b[0].Stop()
		client.AwaitCalls(reviews+":80", 100)

		made := client.MustNotHaveFailed(reviews + ":80")
		one, three := client.journal.By(reviews+":80", "one"), client.journal.By(reviews+":80", "three")
		used := max(0, one[len(one)-1].ended.Sub(went))
		t.Logf("%d calls; the new endpoint was used after %s, the lost one for another %s", made, round(three[0].ended.Sub(came)), round(used))
	})
}

// TestCallsGoOnWhileIsthmusIsKilled kills Isthmus and starts it again, and has
// the endpoints change in between.
func TestCallsGoOnWhileIsthmusIsKilled(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		const down = 150 // calls that are made in the meantime: three seconds
		b := startBackends(t, "one", "two", "three")
		isthmus := newIsthmus(t)
		isthmus.Write(reviews, b[0], b[1])
		isthmus.Start()
		client := dial(t, impl, isthmus, reviews+":80")
		client.AwaitAnswers(reviews+":80", "one", "two")

		isthmus.Kill()
		client.AwaitCalls(reviews+":80", down)
		client.AwaitAnswers(reviews+":80", "one", "two")
		isthmus.Write(reviews, b[1], b[2])
		isthmus.Start()
		started := time.Now()
		client.AwaitAnswers(reviews+":80", "two", "three")

		made := client.MustNotHaveFailed(reviews + ":80")
		three := client.journal.By(reviews+":80", "three")
		t.Logf("%d calls; what changed meanwhile was used %s after the restart", made, round(three[0].ended.Sub(started)))
	})
}

// TestAbsentServiceFailsByItself has a client wait for a service that nobody
// offers. The client has a timer of 15 s for that, which no server can shorten;
// grpc-node is sent a listener without routes instead. A service that is offered
// after all is found.
func TestAbsentServiceFailsByItself(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one", "two")
		isthmus := newIsthmus(t)
		isthmus.Write(reviews, b[0])
		isthmus.Start()
		client := dial(t, impl, isthmus, reviews+":80", ratings+":80")
		client.AwaitAnswers(reviews+":80", "one")

		failed := client.AwaitFailure(ratings + ":80")
		if code, _, _ := strings.Cut(failed.err, ":"); strings.ToUpper(code) != "UNAVAILABLE" {
			t.Errorf("the call to the absent service that failed first: %s", failed)
		}
		client.AwaitCalls(reviews+":80", 50)

		isthmus.Write(ratings, b[1])
		client.AwaitAnswers(ratings+":80", "two")
		client.AwaitAnswers(reviews+":80", "one")

		made := client.MustNotHaveFailed(reviews + ":80")
		t.Logf("%d calls; the absent service failed %s after the first call to it: %s", made,
			round(failed.ended.Sub(client.journal.Began(ratings+":80"))), failed.err)
	})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

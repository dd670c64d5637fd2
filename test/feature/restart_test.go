package feature_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/app"
)

func TestClientKeepsItsEndpointsWhileIsthmusIsDown(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "three")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0], b[1])})
	before := start(t, files)
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one", "two")
	calls := client.KeepCalling()

	before.Stop()
	client.AwaitAnswers("one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1], b[2])})
	client.AwaitAnswers("one", "two")

	after := startOn(t, before.XDS, files)
	client.AwaitAnswers("two", "three")
	after.Settle()
	b[0].Stop()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[2])})
	client.AwaitAnswers("three")
	calls.MustNotHaveFailed()
}

// TestRestartTakesNothingAwayBeforeEverySourceIsListed restarts while one
// registry is out of reach. Without its last known good nobody can say what it
// holds, so its clients keep what they have. If it need not be waited for, they do
// until the wait is over: from then on those that take full sets have what is known.
func TestRestartTakesNothingAwayBeforeEverySourceIsListed(t *testing.T) {
	t.Parallel()
	for _, optional := range []bool{false, true} {
		t.Run(map[bool]string{false: "required", true: "optional"}[optional], func(t *testing.T) {
			t.Parallel()
			there, away := newRegistry(t, "there"), newRegistry(t, "away")
			away.optional = optional
			b := startBackends(t, "one", "two", "three")
			there.Write("shop.yaml", service{Host: ratings, Endpoints: endpoints(b[0])})
			away.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
			away.Write("stays.yaml", service{Host: "stays.shop.example", Endpoints: endpoints(b[1])}) // the last one would be held
			before := start(t, there, away)
			client := dial(t, before, reviews+":80", "shop")
			client.AwaitAnswers("two")
			calls := client.KeepCalling()

			before.Stop()
			away.Move("", "../unmounted")
			after := startOn(t, before.XDS, there, away)
			if optional {
				dial(t, after, ratings+":80", "shop").AwaitAnswers("one")
				client.AwaitFailure(reviews + ":80")
			} else {
				dial(t, after, ratings+":80", "shop").AwaitFailure("not primed yet")
				client.AwaitAnswers("two")
			}

			away.Move("../unmounted", "")
			after.AwaitSource("away", "live", "")
			away.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[2])})
			client.AwaitAnswers("three")
			if !optional {
				calls.MustNotHaveFailed()
			}

			// Now that it is known, what is not there is gone.
			away.Remove("shop.yaml")
			client.AwaitFailure(reviews + ":80")
		})
	}
}

func TestWhatWentAwayWhileIsthmusWasDownIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	before := start(t, files)
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one")
	before.Stop()
	files.Remove("shop.yaml")
	client.AwaitAnswers("one")
	startOn(t, before.XDS, files)
	client.AwaitFailure(reviews + ":80")
}

func TestClientsMayConnectOverAUnixSocket(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	socket := "unix://" + filepath.Join(t.TempDir(), "xds")
	before := startOn(t, socket, files)
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one")
	before.Stop()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	startOn(t, socket, files)
	client.AwaitAnswers("two")
}

// TestUnixSocketOfAKilledProcessIsReused leaves the socket's file behind.
func TestUnixSocketOfAKilledProcessIsReused(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	socket := "unix://" + filepath.Join(t.TempDir(), "xds")
	killed := startProcess(t, build(t), configFor(socket, []*registry{files}))
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	isthmus := startOn(t, socket, files)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("one")

	// One that is in use is not.
	config := load(t, configFor(socket, []*registry{files}))
	if _, err := app.New(t.Context(), config, "test", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a second application listens on the same socket")
	}
	dial(t, isthmus, reviews+":80", "").AwaitAnswers("one")
}

package feature_test

import (
	"strings"
	"testing"
	"time"
)

// A debounce of the configuration holds for the type and the way to take it
// that it names: gRPC clients take load assignments as state of the world.
func TestDebounceOfTheConfiguration(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	b := startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	const quiet = 2 * time.Second
	text := strings.Replace(configFor(loopback, []*registry{files}), "xds: {", "xds: {debounce: {endpoints: {stateOfTheWorld: {quiet: 2s}}}, ", 1)
	isthmus := startWith(t, text, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	begin := time.Now()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	if took := time.Since(begin); took < quiet {
		t.Errorf("a change reached the client after %v, which should have waited for %v", took, quiet)
	}
}

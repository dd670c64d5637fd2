package envoy_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// An Envoy that asks for what Isthmus has nothing of starts at once: it gets an
// answer. These would wait for ever without an answer, where others wait for 15 s.
// Of secrets a state-of-the-world Envoy cannot be sent one: it passes over a response
// that names none.
func TestStartDoesNotWaitForWhatIsNotServed(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Unserved: "0s"})
		m.MustBeSettled()
	})
}

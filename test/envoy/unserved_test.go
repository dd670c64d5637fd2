package envoy_test

import (
	"strings"
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

// An Envoy of state of the world that asks for secrets which there are not waits for them
// until its own time is over, and for nothing else.
func TestStateOfTheWorldWaitsForSecretsUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Serve("")
	p := m.connectWith(proxy.Config{Unserved: "1s"})
	m.MustBeSettled()
	stats, err := p.Stats(t.Context(), "init_fetch_timeout$")
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for name, n := range stats {
		if n > 0 && strings.HasPrefix(name, "sds.") {
			late++
		} else if n > 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	if late != 2 {
		t.Errorf("%d secrets were waited for in vain, not 2: %v", late, stats)
	}
}

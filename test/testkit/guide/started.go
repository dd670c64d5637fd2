package guide

import (
	"testing"
	"time"
)

// Newcomer is somebody who follows docs/getting-started.md.
type Newcomer struct {
	*Reader
	page Page
}

// Begin reads the page, and does what every part of it begins with: a service, with
// an endpoint that answers, and an Isthmus that has it. The ports and the address of
// the page are replaced by those of the test, as the values are.
func Begin(t testing.TB, page string, patience time.Duration, programs map[string]string, freePort func() string, values ...string) *Newcomer {
	t.Helper()
	admin := "127.0.0.1:" + freePort()
	values = append(values,
		"15010", freePort(), "8000", freePort(), "9001", freePort(),
		"outputs:\n", "admin: {listen: \""+admin+"\"}\noutputs:\n")
	n := &Newcomer{NewReader(t, patience, programs, "ISTHMUS_ADMIN=http://"+admin), Read(t, page, values...)}
	n.Follow("A service")
	return n
}

// Follow does what a part of the page says.
func (n *Newcomer) Follow(title string) {
	n.T.Helper()
	n.Reader.Follow(n.page.Step(n.T, title))
}

// Step returns a part of the page.
func (n *Newcomer) Step(title string) Step {
	n.T.Helper()
	return n.page.Step(n.T, title)
}

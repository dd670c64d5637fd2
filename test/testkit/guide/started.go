package guide

import "testing"

// Newcomer is somebody who follows docs/getting-started.md.
type Newcomer struct {
	*Reader
	page Page
}

// Begin reads the page, and takes the first steps of most of its parts: a service, with
// an endpoint that answers, and an Isthmus that has it.
func Begin(t testing.TB, page string, programs map[string]string, freePort func() string, values ...string) *Newcomer {
	t.Helper()
	n := Open(t, page, programs, freePort, values...)
	n.Follow("A service")
	return n
}

// Open reads the page, in an empty folder. The ports and the address of the page are
// replaced by the test's own, as the values are.
func Open(t testing.TB, page string, programs map[string]string, freePort func() string, values ...string) *Newcomer {
	t.Helper()
	admin := "127.0.0.1:" + freePort()
	values = append(values,
		"15010", freePort(), "8000", freePort(), "9001", freePort(), "9443", freePort(),
		"outputs:\n", "admin: {listen: \""+admin+"\"}\noutputs:\n")
	return &Newcomer{NewReader(t, programs, "ISTHMUS_ADMIN=http://"+admin), Read(t, page, values...)}
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

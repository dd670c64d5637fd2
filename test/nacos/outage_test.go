package nacos_test

import (
	"strings"
	"testing"
)

// A Nacos that is killed has lost all instances when it is there again: they are in
// its memory only. What was there is served until it is there again, or until the
// loss is confirmed: by a command, or by time.
func TestNacosIsKilled(t *testing.T) {
	t.Parallel()
	const host = "cart.DEFAULT-GROUP.public.nacos"
	n := startKilled(t)
	cart := newWorkload(t, n)
	cart.do(order{Service: "cart", Address: "10.7.0.1", Port: 80})
	patient, hasty := n.look(t, "patient", "1h", false), n.look(t, "hasty", "10s", true)
	all := append(append([]view(nil), patient...), hasty...)
	expect(t, all, host, "10.7.0.1:80")

	// Down. The workload is frozen, so that it does not register again at once.
	calm := undisturbed(t, patient, host)
	cart.freeze()
	n.Kill()
	for _, v := range all {
		if s := v.becomes(t, "stale"); s.Reason == "" || s.Age == "" {
			t.Errorf("%s: the outage is shown as %+v", v.name, s)
		}
	}
	expect(t, all, host, "10.7.0.1:80")

	// There again, and empty.
	n.start(t)
	for _, v := range patient {
		v.holdsEverything(t)
	}
	expect(t, patient, host, "10.7.0.1:80")
	expect(t, hasty, host) // in due time
	for _, v := range hasty {
		v.becomes(t, "live")
		if !strings.Contains(v.Log(), "suspicious drop: the missing endpoints are held") {
			t.Errorf("%s has not held the loss of everything", v.name)
		}
	}

	// The workload registers again. It has an order to: by itself its client tries three times within
	// 300 ms of its new connection, and gives up if the server has not completed that.
	cart.thaw()
	cart.do(order{Service: "cart", Address: "10.7.0.1", Port: 80})
	expect(t, hasty, host, "10.7.0.1:80")
	for _, v := range patient {
		v.becomes(t, "live")
	}
	expect(t, patient, host, "10.7.0.1:80")
	calm()

	// There again, and empty for good.
	cart.kill()
	n.Kill()
	n.start(t)
	for _, v := range patient {
		v.holdsEverything(t)
		v.release(t)
		v.becomes(t, "live")
	}
	expect(t, all, host)

	// Nacos counts versions from 1 again, but this is another content.
	newWorkload(t, n).do(order{Service: "cart", Address: "10.7.0.9", Port: 81})
	expect(t, all, host, "10.7.0.9:81")
}

// holdsEverything waits until the only endpoint is held, and the state says so.
func (v view) holdsEverything(t *testing.T) {
	t.Helper()
	s := v.becomes(t, "held")
	if s.Held == 0 || s.Age == "" || !strings.Contains(s.Reason, "1 of 1 endpoints") || !strings.Contains(s.Reason, "isthmus sources release nacos") {
		t.Errorf("%s: what is held is shown as %+v", v.name, s)
	}
}

func startKilled(t *testing.T) *nacos {
	t.Helper()
	n, err := newNacos("killed", killedPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	n.start(t)
	return n
}

// start starts it, again if it was killed.
func (n *nacos) start(t *testing.T) {
	t.Helper()
	if err := n.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// look connects clients to new Isthmuses; see add.
func (n *nacos) look(t *testing.T, name, hold string, incremental bool) []view {
	t.Helper()
	added, err := n.add(t.Context(), name, hold, incremental)
	if err != nil {
		t.Fatal(err)
	}
	return look(t, added)
}

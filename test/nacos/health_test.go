package nacos_test

import (
	"testing"
	"time"
)

// An instance that misses its beats is unhealthy after 15 s, and removed after 30 s.
// Nacos lists no unhealthy instance to Isthmus, but says so only when something else
// of the service changes, or when it removes the instance.
func TestInstancesThatMissTheirBeatsGo(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	const host = "pay.DEFAULT-GROUP.public.nacos"
	// Unhealthy after as long as others, but not gone before that has been looked at.
	lost := instance{Service: "pay", IP: "10.3.0.2", Port: 80, Lasts: 45 * time.Second}
	n.mustRegister(t, instance{Service: "pay", IP: "10.3.0.1", Port: 80})
	stop := n.keepAlive(t, lost)
	expect(t, views, host, "10.3.0.1:80", "10.3.0.2:80")

	stop()
	n.lists(t, lost, "10.3.0.1:80", "10.3.0.2:80 unhealthy")
	n.mustRegister(t, instance{Service: "pay", IP: "10.3.0.3", Port: 80})
	expect(t, views, host, "10.3.0.1:80", "10.3.0.3:80")
	n.lists(t, lost, "10.3.0.1:80", "10.3.0.3:80")

	n.keepAlive(t, lost)
	expect(t, views, host, "10.3.0.1:80", "10.3.0.2:80", "10.3.0.3:80")
}

// A service whose last instance misses its beats is gone with it, and is there again
// when the beats are.
func TestServiceWithoutInstancesGoes(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	const host = "mail.DEFAULT-GROUP.public.nacos"
	only := instance{Service: "mail", IP: "10.4.0.1", Port: 25}
	stop := n.keepAlive(t, only)
	expect(t, views, host, "10.4.0.1:25")
	stop()
	expect(t, views, host)
	if err := n.Beat(t.Context(), only); err != nil {
		t.Fatal(err)
	}
	expect(t, views, host, "10.4.0.1:25")
}

package istio_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// outage is how long the API server is away. The pauses of what follows it have
// grown to half a minute by then, where nothing bounds them: the tests of output/istio
// bound them in fake time, and this one prints how long they were.
const outage = time.Minute

// TestWritingBeginsAfterAnOutage kills the API server and starts it again a
// minute later, and then stops it where it is, with its connections open.
func TestWritingBeginsAfterAnOutage(t *testing.T) {
	t.Parallel()
	own := startCluster(t)
	api, registry := connect(t, own), startRegistry(t)
	registry.AddMany("many", 20)
	b := api.Bridge(registry, "away")
	i := serve(t, api, b)
	api.Settle(b)

	own.API.Kill()
	registry.Add("many-1", "10.9.9.9:80")
	i.AwaitWriter("stale")
	<-time.After(outage)
	if err := own.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	api.awaitMoved(b, "many-1")
	api.Settle(b)
	i.AwaitWriter("writing") // its watches are back: without them it stays stale, whatever its lease
	i.mustHaveLoggedOneLoss()

	if err := own.API.Freeze(); err != nil {
		t.Fatal(err)
	}
	registry.Add("many-2", "10.9.9.9:80")
	await(t, "the write that hangs, or the lease, to be shown", func() error {
		w, err := i.writer()
		if err == nil && !strings.Contains(fmt.Sprint(w.Failed), "has not answered") && !strings.Contains(w.Reason, "the lease cannot be") {
			err = fmt.Errorf("the writer is %+v", w)
		}
		return err
	})
	i.AwaitWriter("waiting") // its lease is lost
	<-time.After(outage / 2)
	if err := own.API.Thaw(); err != nil {
		t.Fatal(err)
	}
	api.awaitMoved(b, "many-2")
	i.mustHaveLoggedOneLoss()
	api.Settle(b)
	i.MustLive()
}

// awaitMoved waits until a service has its new endpoint, and prints how long that took.
func (a *api) awaitMoved(b bridge, service string) {
	a.t.Helper()
	began := time.Now()
	await(a.t, service+" to be written", func() error {
		mirrored, err := a.Mirrored(b.namespace, b.withDefaults().instance)
		if err == nil && !strings.Contains(fmt.Sprint(mirrored[service]), "10.9.9.9") {
			err = fmt.Errorf("%s is %v", service, mirrored[service])
		}
		return err
	})
	a.t.Logf("%s was written %s after the API server was ready", service, time.Since(began).Round(10*time.Millisecond))
}

// mustHaveLoggedOneLoss is that the loss of the lease took one line of the log,
// since this was last asked.
func (i *isthmus) mustHaveLoggedOneLoss() {
	i.t.Helper()
	log := i.Log()[i.before:]
	i.before += len(log)
	if n := strings.Count(log, "this replica does not write any more"); n != 1 {
		i.t.Errorf("%d lines say that the lease was lost", n)
	}
	if n := strings.Count(log, "level=ERROR"); n > 0 {
		i.t.Errorf("%d errors were logged", n)
	}
}

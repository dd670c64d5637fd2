package feature_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// reads is the configuration of an Isthmus that reads another over MCP-over-xDS.
func reads(other *isthmus) string {
	return fmt.Sprintf("sources:\n- name: upstream\n  localAddresses: allow\n  xds: {address: %q}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n", other.XDS, loopback, loopback)
}

// What stands in a folder of the first of three Isthmuses reaches the clients of the
// third, over the delta variant of MCP-over-xDS twice.
func TestChainOfIsthmusesPassesEverythingOn(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "three")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[2])})
	first := start(t, files)
	second := startWith(t, reads(first))
	third := startWith(t, reads(second))
	client, other := dial(t, third, reviews+":80", "shop"), dial(t, third, ratings+":80", "shop")
	client.AwaitAnswers("one")
	other.AwaitAnswers("three")
	calls := client.KeepCalling()

	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	other.AwaitAnyFailure()
	third.AwaitSource("upstream", "live", "")
	for _, i := range []*isthmus{first, second} {
		i.awaitReader()
	}
	calls.MustNotHaveFailed()
}

// The Isthmus in between restarts, and empty at first: nothing goes meanwhile, and what
// has changed is there afterwards.
func TestChainSurvivesARestartInBetween(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	first := start(t, files)
	second := startWith(t, reads(first))
	third := startWith(t, reads(second))
	client := dial(t, third, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	address := second.XDS
	second.Stop()
	third.AwaitSource("upstream", "stale", "")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	startWith(t, strings.Replace(reads(first), fmt.Sprintf("listen: %q}\nadmin", loopback), fmt.Sprintf("listen: %q}\nadmin", address), 1))
	client.AwaitAnswers("two")
	third.AwaitSource("upstream", "live", "")
	calls.MustNotHaveFailed()
}

// awaitReader waits until an Isthmus shows the one that reads it, in the delta variant.
func (i *isthmus) awaitReader() {
	i.t.Helper()
	await(i.t, "the reader to be shown", func() error {
		for _, c := range i.Clients() {
			for name, of := range c.Types {
				if strings.HasSuffix(name, "/ServiceEntry") && of.State == "accepted" && of.Held > 0 && of.NACKed == 0 && strings.Contains(c.Protocol, "delta") {
					return nil
				}
			}
		}
		return errors.New("there is none that has ACKed ServiceEntries")
	})
}

package feature_test

import (
	"fmt"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/testkit/xdsclient"
)

// witness is a client that sees everything. What it was told, others have been
// told, or it is on its way to them.
type witness struct {
	registry *registry // to write to
	client   *xdsclient.Client
	markers  int
}

// Settle returns once what was written to the registries has come through to
// the clients, and they have answered.
func (i *isthmus) Settle() {
	i.t.Helper()
	if i.witness.client == nil {
		i.witness.client = openStream(i.t, i, "witness")
	}
	// The second marker leaves the engine after all that came with the first.
	i.mark()
	i.mark()
	await(i.t, "every response to be answered", func() error {
		for _, c := range i.Clients() {
			for name, of := range c.Types {
				if of.State == "waiting" || of.Pending > 0 && of.Reason == "" {
					return fmt.Errorf("%s of %s: %s, %d pending", name, c.ID, of.State, of.Pending)
				}
			}
		}
		return nil
	})
}

// mark writes a service that nobody calls and waits until it arrives.
func (i *isthmus) mark() {
	i.t.Helper()
	w := &i.witness
	w.markers++
	host := fmt.Sprintf("marker-%d.example", w.markers)
	w.registry.Write("zz-marker.yaml", service{Host: host, Endpoints: []string{"{address: 192.0.2.1}"}})
	w.client.Await(host, func(s *xdsclient.State) bool { return slices.Contains(s.Names(xdsclient.CDS), cluster(host)) })
}

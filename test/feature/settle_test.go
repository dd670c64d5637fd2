package feature_test

import (
	"fmt"
	"slices"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// witness is a client that sees everything. What it received, others have
// received, or it is on its way to them.
type witness struct {
	registries []*registry // to write to
	client     *xdsclient.Client
	markers    int
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

// mark writes services that nobody calls and waits until they arrive. A registry
// that is out of reach has nothing to come through.
func (i *isthmus) mark() {
	i.t.Helper()
	w := &i.witness
	w.markers++
	var hosts []string
	for _, r := range w.registries {
		if r.Exists() {
			hosts = append(hosts, fmt.Sprintf("marker-%d.%s.example", w.markers, r.name))
			r.Write("zz-marker.yaml", service{Host: hosts[len(hosts)-1], Name: "marker-" + r.name})
		}
	}
	for _, host := range hosts {
		w.client.Await(host, func(s *xdsclient.State) bool { return slices.Contains(s.Names(xdsclient.CDS), cluster(host)) })
	}
}

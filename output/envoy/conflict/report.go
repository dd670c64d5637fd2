package conflict

import (
	"context"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// Report returns a function that lists the conflicts of a service for sidecars under
// some settings. Once ctx has ended, the function may return only some of
// the conflicts.
func Report(ctx context.Context, now *catalog.Snapshot, under *policy.Prepared) func(*catalog.Service) []catalog.Conflict {
	c := report{ctx: ctx, now: now, under: under, owners: map[workloadIn]map[uint32]catalog.InboundPort{}}
	return c.of
}

// Loopback is [Report] for sidecars with INTERCEPTION_MODE NONE. All services of a port share
// one listener on loopback there, and connections to it have no original destination.
func Loopback(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	c := report{ctx: ctx, now: now}
	return func(s *catalog.Service) (list []catalog.Conflict) {
		for _, port := range s.Ports {
			if p := (node.Proxy{Mode: node.None}); p.Opens(port.Number) {
				list = append(list, c.at(port.Number, p)[s.Key]...)
			}
		}
		return list
	}
}

// Losers yields the services that lose something to another service at the listeners or routes
// of sidecars, with the conflicts of each port. Unredirected includes the conflicts of
// [Loopback]. In contrast to [Report], it looks at no endpoint: it costs the losers,
// and the ports with services that changed since anybody last asked. Once ctx has ended, it
// may yield only some of the services.
func Losers(ctx context.Context, now *catalog.Snapshot, under *policy.Prepared, unredirected bool) iter.Seq2[catalog.ServiceKey, catalog.Conflict] {
	c := report{ctx: ctx, now: now, under: under}
	return func(yield func(catalog.ServiceKey, catalog.Conflict) bool) {
		for index := range now.Ports() {
			proxies := c.redirected()
			if p := (node.Proxy{Mode: node.None}); unredirected && p.Opens(index.Number) {
				proxies = append(proxies, p)
			}
			for _, p := range proxies {
				for key, list := range c.at(index.Number, p) {
					for _, conflict := range list {
						if !yield(key, conflict) {
							return
						}
					}
				}
			}
		}
	}
}

// report is one report about the services of a snapshot. It has one caller at a time.
type report struct {
	ctx    context.Context
	now    *catalog.Snapshot
	under  *policy.Prepared                              // nil for loopback, which does not depend on settings
	owners map[workloadIn]map[uint32]catalog.InboundPort // of workloads that many services have
}

func (c report) of(s *catalog.Service) (list []catalog.Conflict) {
	for _, port := range s.Ports {
		if c.ctx.Err() != nil {
			return list
		}
		list = append(list, c.outbound(s, port.Number)...)
		list = append(list, c.inbound(s, port.Number)...)
	}
	return list
}

// outbound lists the conflicts at a port, for clients of every cluster.
func (c report) outbound(s *catalog.Service, number uint32) (list []catalog.Conflict) {
	for _, p := range c.redirected() {
		for _, conflict := range c.at(number, p)[s.Key] {
			if !slices.Contains(list, conflict) {
				list = append(list, conflict)
			}
		}
	}
	return list
}

// redirected returns a sidecar of each cluster.
func (c report) redirected() (list []node.Proxy) {
	for _, cluster := range c.now.AddressClusters() {
		list = append(list, node.Proxy{Domain: c.under.OrIstio().Domain, Cluster: cluster})
	}
	if len(list) == 0 {
		list = append(list, node.Proxy{Domain: c.under.OrIstio().Domain})
	}
	return list
}

// portConflicts are the conflicts at a port.
type portConflicts map[catalog.ServiceKey][]catalog.Conflict

// conflictsOf is the key of the conflicts at some sidecars in the cache of a port's index.
type conflictsOf struct {
	proxy      node.Proxy
	addressing string
}

// at returns the conflicts at a port of some sidecars.
func (c report) at(number uint32, p node.Proxy) portConflicts {
	index := c.now.Port(number)
	if index == nil || p.Reserved(number) {
		return nil
	}
	made, _ := index.Derive(conflictsOf{p, c.under.OrIstio().Addressing}, func(derived.Change) (any, error) {
		l := portLosses{ctx: c.ctx, index: index, proxy: p, under: c.under, first: map[lostThing]reach.Loss{}}
		l.atListeners()
		if p.Mode != node.None {
			l.domains()
			l.atInstances()
		}
		return l.conflicts(), c.ctx.Err()
	})
	found, _ := made.(portConflicts)
	return found
}

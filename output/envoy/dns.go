package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push"
)

// sharedByAll are the listeners and routes that any service may be part of.
func sharedByAll(s *policy.Prepared) []sharedName {
	list := edgeNames(s)
	if s.DNS != nil {
		list = append(list, sharedName{ListenerType, names.DNSListener})
	}
	return list
}

// findDNSListener returns the listener that answers lookups.
func findDNSListener(w *state, v View) (push.Subject, bool) {
	if w.settings.DNS == nil || w.definitions == nil || v.proxy.Unprivileged && w.settings.DNS.Port < push.FirstUnprivilegedPort {
		return nil, false
	}
	v.single = false // it says nothing of routes
	return dnsListener{proxySlot{ListenerType, names.DNSListener, v}, w.definitions}, true
}

// dnsListener answers lookups of the hosts that a view sees.
type dnsListener struct {
	proxySlot
	services *definitions
}

// Refers implements [push.Referrer].
func (dnsListener) Refers(string) iter.Seq[string] { return nothing }

// Encode implements [push.Subject].
func (l dnsListener) Encode() push.Encoded {
	hosts := &vhost.Pieces{}
	hosts.Add(l.table())
	return l.encode(hosts)
}

// table is what is answered, by host.
func (l dnsListener) table() *vhost.Fragments {
	a := answering{client: l.view.client(), ports: map[uint32]*catalog.PortServices{}, reaches: map[uint32]reach.Arrivals{}}
	for index := range l.services.byPort {
		a.ports[index.Number] = index
	}
	all, table := l.services.names, &vhost.Fragments{}
	for h := range all.Named {
		if !a.sees(h.ServiceDefinition) {
			continue
		}
		domains := h.DomainsFor(h.OwnFor(l.view.Namespace))
		if h.Contested {
			domains = h.WonBy(all.Claims, l.view.Namespace, a.sees)
		}
		if addresses, names := a.answers(h, domains); len(names) > 0 {
			table.Add(h.FragmentOf(names, addresses, l.view.settings.DNS.TTL))
		}
	}
	return table
}

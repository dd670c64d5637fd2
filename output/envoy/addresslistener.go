package envoy

import (
	"iter"
	"strconv"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// addressListener is the listener of an address and port. It is known by what it says, and
// not by who looks: all views share it in which it says the same.
type addressListener struct {
	address  string
	number   uint32
	mode     node.Interception
	settings *policy.Prepared // nil if nothing is said
	layoutKey
}

// layoutKey is a layout as a value that can be compared.
type layoutKey struct {
	routes   string
	other    string
	affinity model.Affinity
	chains   string // with their match, as writeChains writes them
}

func addressListenerOf(v View, address string, number uint32, services []catalog.ServiceDefinition) addressListener {
	l := reach.LayoutOf(services, number, false, v.client())
	return addressListener{address, number, v.proxy.Mode, v.settings, layoutKey{l.Routes, l.Other, l.Affinity, writeChains(l)}}
}

// Slot implements [push.Subject].
func (a addressListener) Slot() any { return a }

// Refers implements [push.Referrer].
func (a addressListener) Refers(to string) iter.Seq[string] {
	switch {
	case to == wire.ClusterURL:
		return a.layout().Clusters(unknownCluster(a.settings.OrIstio().RegistryOnly))
	case to == wire.RouteURL && a.routes != "":
		return one(a.routes)
	default:
		return nothing
	}
}

// Encode implements [push.Subject].
func (a addressListener) Encode() push.Encoded {
	return encodeLayout(a.layout(), node.Proxy{Role: node.Sidecar, Mode: a.mode}, a.settings.OrIstio(), a.address, a.number)
}

// layout is the layout that the key was made of.
func (k layoutKey) layout() reach.Layout {
	l := reach.Layout{Routes: k.routes, Other: k.other, Affinity: k.affinity}
	for rest := k.chains; rest != ""; {
		var fields [3]string
		for i := range fields {
			quoted, _ := strconv.QuotedPrefix(rest)
			rest = rest[len(quoted):]
			fields[i], _ = strconv.Unquote(quoted)
		}
		l.BySNI = append(l.BySNI, reach.Chain{Match: fields[0], Cluster: fields[1], Affinity: model.Affinity(fields[2])})
	}
	return l
}

// writeChains writes the chains of a layout in their order, as quoted texts. The listener of
// an address has none for blocks of addresses.
func writeChains(l reach.Layout) string {
	var b []byte
	for _, c := range reach.InOrder(l.BySNI) {
		b = strconv.AppendQuote(b, c.Match)
		b = strconv.AppendQuote(b, c.Cluster)
		b = strconv.AppendQuote(b, string(c.Affinity))
	}
	return string(b)
}

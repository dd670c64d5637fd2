package envoy

import (
	"iter"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// listener is a gRPC client's way in: it stands for the target the client
// dialled, and leads to the route configuration.
type listener struct{ slot }

// Refers implements [push.Referrer].
func (l listener) Refers(to string) iter.Seq[string] {
	if to == wire.RouteURL {
		return one(l.clusterName())
	}
	return nothing
}

// Encode implements [push.Subject].
func (l listener) Encode() push.Encoded {
	name := names.Listener(l.key.Host, l.port)
	return encode(name, wire.ListenerURL, wire.APIListener(name, l.clusterName()))
}

// absentListener has grpc-node sent an empty listener for one that does not exist.
// It remembers a listener that was removed, and when the same comes again takes
// it for no change: a service that returned as it was would stay lost to it. Others
// know better, and grpc-java does not get over an empty listener.
func absentListener(kind string, m push.Mode) push.Absence {
	if kind == reach.KindGRPCNode && m == push.WholeState {
		return push.Empty
	}
	return push.Removal
}

// voidListener returns a listener without any route: calls fail at once. It has to
// have a virtual host, without which grpc-node ends with an exception.
func voidListener(name string) push.Encoded {
	host, _, ok := names.ParseListener(name)
	if !ok || len(host) > vhost.LongestHost || !utf8.ValidString(host) {
		return push.Encoded{}
	}
	return encode(name, wire.ListenerURL, wire.VoidListener(name))
}

package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// encode puts the listener around its table.
func (l dnsListener) encode(table *vhost.Pieces) push.Encoded {
	loopback := node.Proxy{Mode: node.None, Family: l.view.proxy.Family}.Shared()
	body := wire.DNSListener(l.name, loopback, l.view.settings.DNS, table.Size())
	return push.Encoded{Name: l.name, Version: vhost.VersionOf(body).Plus(table.Sum), Body: body, Tail: table}
}

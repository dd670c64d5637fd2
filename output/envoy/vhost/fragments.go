package vhost

import (
	"iter"
	"unique"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A route configuration is a list of fragments, each a virtual host as it is encoded. A
// message's fields may be put together from pieces, so views that see the same service
// share its bytes, and a service that changes costs the encoding of one fragment.

// Fragment is a virtual host in a route configuration.
type Fragment struct {
	text    []byte
	version world.Version
}

// NewFragment encodes a virtual host.
func NewFragment(m *routev3.VirtualHost) *Fragment {
	text := wire.Fragment(m)
	return &Fragment{text, VersionOf(text)}
}

// Pieces is the end of a route configuration: the plain hosts of a port as a namespace sees
// them, and further fragments.
type Pieces struct {
	total
	hosts *hostIndex // of a port; nil for none
	home  unique.Handle[string]
	list  []*Fragment
}

var _ world.Fragments = (*Pieces)(nil)

// Add appends a fragment.
func (p *Pieces) Add(f *Fragment) {
	p.list = append(p.list, f)
	p.add(f)
}

// Size implements [world.Fragments].
func (p *Pieces) Size() int { return p.size }

// All implements [world.Fragments].
func (p *Pieces) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if p.hosts != nil {
			for _, h := range p.hosts.All() {
				f := &h.usual
				if h.home == p.home {
					f = h.own
				}
				if h.plain() && !yield(f.text) {
					return
				}
			}
		}
		for _, f := range p.list {
			if !yield(f.text) {
				return
			}
		}
	}
}

// EncodeRoutes puts a route configuration together. Its version is a sum, so it does
// not depend on the order of the virtual hosts.
func EncodeRoutes(m *routev3.RouteConfiguration, hosts *Pieces) world.Encoded {
	body, head := wire.AnyHead(m.GetName(), wire.RouteURL, m, hosts.size)
	return world.Encoded{Name: m.GetName(), Version: VersionOf(head).Plus(hosts.Sum), Body: body, Tail: hosts}
}

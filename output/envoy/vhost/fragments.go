package vhost

import (
	"iter"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// A route configuration is a list of fragments, each a virtual host as it is encoded. A
// message's fields may be put together from pieces, so views that see the same service
// share its bytes, and a service that changes costs the encoding of one fragment.

// Fragment is a virtual host in a route configuration.
type Fragment struct {
	text    []byte
	version push.Version
}

// NewFragment encodes a virtual host.
func NewFragment(m *routev3.VirtualHost) *Fragment {
	text := wire.Fragment(m)
	return &Fragment{text, VersionOf(text)}
}

// lazily is a fragment that is made when it is first asked for, and again after a panic.
type lazily struct {
	mu sync.Mutex
	is *Fragment
}

func (l *lazily) get(host func() *routev3.VirtualHost) *Fragment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is == nil {
		l.is = NewFragment(host())
	}
	return l.is
}

// Fragments are some that follow each other. They are immutable, and shared by all
// views that see the same.
type Fragments struct {
	list []*Fragment
	size int
	sum  push.Version // whatever their order
}

// Add appends a fragment.
func (f *Fragments) Add(more *Fragment) {
	f.list = append(f.list, more)
	f.size += len(more.text)
	f.sum = f.sum.Plus(more.version)
}

// Pieces is the end of a route configuration: its virtual hosts.
type Pieces struct {
	groups []*Fragments
	size   int
	Sum    push.Version
}

var _ push.Fragments = (*Pieces)(nil)

// Add appends fragments.
func (p *Pieces) Add(f *Fragments) {
	if len(f.list) == 0 {
		return
	}
	p.groups = append(p.groups, f)
	p.size += f.size
	p.Sum = p.Sum.Plus(f.sum)
}

// Size implements [push.Fragments].
func (p *Pieces) Size() int { return p.size }

// All implements [push.Fragments].
func (p *Pieces) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, group := range p.groups {
			for _, f := range group.list {
				if !yield(f.text) {
					return
				}
			}
		}
	}
}

// EncodeRoutes puts a route configuration together. Its version is a sum, so it does
// not depend on the order of the virtual hosts.
func EncodeRoutes(m *routev3.RouteConfiguration, hosts *Pieces) push.Encoded {
	body, head := wire.AnyHead(m.GetName(), wire.RouteURL, m, hosts.size)
	return push.Encoded{Name: m.GetName(), Version: VersionOf(head).Plus(hosts.Sum), Body: body, Tail: hosts}
}

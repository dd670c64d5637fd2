package envoy

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

// fragment is a virtual host in a route configuration.
type fragment struct {
	text    []byte
	version push.Version
}

func newFragment(m *routev3.VirtualHost) *fragment {
	text := wire.Fragment(m)
	return &fragment{text, versionOf(text)}
}

// lazily is a fragment that is made when it is first asked for, and again after a panic.
type lazily struct {
	mu sync.Mutex
	is *fragment
}

func (l *lazily) get(host func() *routev3.VirtualHost) *fragment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is == nil {
		l.is = newFragment(host())
	}
	return l.is
}

// fragments are some that follow each other. They are immutable, and shared by all
// views that see the same.
type fragments struct {
	list []*fragment
	size int
	sum  push.Version // whatever their order
}

func (f *fragments) add(more *fragment) {
	f.list = append(f.list, more)
	f.size += len(more.text)
	f.sum = f.sum.Plus(more.version)
}

// pieces is the end of a route configuration: its virtual hosts.
type pieces struct {
	groups []*fragments
	size   int
	sum    push.Version
}

var _ push.Fragments = (*pieces)(nil)

func (p *pieces) add(f *fragments) {
	if len(f.list) == 0 {
		return
	}
	p.groups = append(p.groups, f)
	p.size += f.size
	p.sum = p.sum.Plus(f.sum)
}

// Size implements [push.Fragments].
func (p *pieces) Size() int { return p.size }

// All implements [push.Fragments].
func (p *pieces) All() iter.Seq[[]byte] {
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

// encodeRoutes puts a route configuration together. Its version is a sum, so it does
// not depend on the order of the virtual hosts.
func encodeRoutes(m *routev3.RouteConfiguration, hosts *pieces) push.Encoded {
	body, head := wire.AnyHead(m.GetName(), wire.RouteURL, m, hosts.size)
	return push.Encoded{Name: m.GetName(), Version: versionOf(head).Plus(hosts.sum), Body: body, Tail: hosts}
}

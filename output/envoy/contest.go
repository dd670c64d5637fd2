package envoy

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// contest is for what the services of a port ask for. They enter by who owns addresses for
// workloads of no namespace.
type contest struct {
	in      conflictsIn
	index   *catalog.PortServices
	secure  handshakesAt
	blocks  blockSet // that have a chain of their own
	claimed map[string]*claimants
}

func (c contest) rivals(w want) *claimants {
	if c.claimed[w.key] == nil {
		c.claimed[w.key] = &claimants{by: w.by, means: c.index.Means, special: func(host string) []string { return special(c.index, host) }}
	}
	return c.claimed[w.key]
}

// sortNames puts those who ask for a name in the order of names.
func (c contest) sortNames() {
	for _, rivals := range c.claimed {
		if rivals.by != catalog.Name {
			continue
		}
		slices.SortFunc(rivals.everywhere, rivals.compare)
		for _, services := range rivals.byNamespace {
			slices.SortFunc(services, rivals.compare)
		}
	}
}

// wantsOf yields what a service asks for. One of TLS has all connections to an address in
// the eyes of those that see no other there.
func (c contest) wantsOf(s catalog.ServiceDefinition) iter.Seq[want] {
	return func(yield func(want) bool) {
		for w := range wantsOf(s, c.index, c.in, c.secure) {
			if !yield(w) {
				return
			}
			if w.also == "" || w.listener == otherAddresses {
				continue
			}
			for _, n := range c.aloneAt(s, w.listener) {
				alone := addressWanted(w.listener, c.index.Number)
				if alone.only = n; !yield(alone) {
					return
				}
			}
		}
	}
}

// enter has a service ask for all it wants, and returns the listeners without a place for
// it. There it has nothing, and takes nothing from those that come later.
func (c contest) enter(s catalog.ServiceDefinition) (without map[string]bool) {
	without = map[string]bool{}
	served := map[string]bool{}
	for p := range c.placesOf(s) {
		without[p.listener] = c.rivals(want{key: p.against}).haveAll(s)
	}
	for w := range c.wantsOf(s) {
		if w.listener != "" && without[w.listener] {
			continue
		}
		rivals := c.rivals(w)
		served[w.listener] = served[w.listener] || !rivals.haveAll(s)
		rivals.add(s, w.only)
		if w.also != "" {
			c.rivals(want{key: w.also}).add(s, w.only)
		}
	}
	for p := range c.placesOf(s) {
		if !without[p.listener] && (p.reads || served[p.listener]) {
			c.rivals(want{key: p.key}).add(s, "")
		}
	}
	return without
}

// lostBy returns what others have of all that a service asks for, once all have entered.
func (c contest) lostBy(s catalog.ServiceDefinition, without map[string]bool) *defeats {
	lost := &defeats{}
	for p := range c.placesOf(s) {
		c.rivals(want{key: p.against}).judge(lost, p.want, s)
	}
	for w := range c.wantsOf(s) {
		if w.listener == "" || !without[w.listener] {
			c.rivals(w).judge(lost, w, s)
		}
	}
	return lost
}

// readingPlace is a place on a listener, which either reads connections or does not.
type readingPlace struct {
	want
	reads   bool
	against string // the key of those that need the opposite
}

// otherAddresses stands for the listener of all addresses without one of their own.
const otherAddresses = "addresses without a listener of their own"

const (
	notRead = "%s are not read, since the server of %s of namespace %s may speak first %s, so none go to %s; %s"
	isRead  = "%s are read, to find those of %s of namespace %s %s, so none go to %s, whose server may speak first; %s"
	another = "give one of the two another port"
)

// placesOf yields the listeners of a service, if it needs to have connections read there
// or not to have them read.
func (c contest) placesOf(s catalog.ServiceDefinition) iter.Seq[readingPlace] {
	return func(yield func(readingPlace) bool) {
		number := c.index.Number
		port, _ := s.Port(number)
		kind := trafficOf(port)
		_, whole := sniOf(s.Key.Host)
		foreign := s.ForeignIn(c.in.cluster)
		for address := range (proxy{cluster: c.in.cluster}).listensAt(s, c.index) {
			if foreign && address != (proxy{}).shared() {
				continue
			}
			p := readingPlace{want: want{
				listener: address, field: fmt.Sprintf("ports[%d].protocol", number),
				asked: fmt.Sprintf("connections to port %d of", number), next: another,
			}}
			if address == (proxy{}).shared() {
				p.listener = otherAddresses
			}
			reading, silent := "read "+p.listener, "silent "+p.listener
			byName := p.listener == otherAddresses || c.secure.several(address)
			switch {
			case kind == httpOnly, kind == sniffed, kind == tlsOnly && byName && whole:
				p.reads, p.key, p.against, p.reason = true, reading, silent, notRead
			case speaksFirst(port):
				p.key, p.against, p.reason = silent, reading, isRead
			default:
				continue
			}
			if p.name = p.listener; !yield(p) {
				return
			}
		}
	}
}

// yieldsTo yields what a service has only where no other listens at its addresses: a
// listener of an address, or a chain of a block, goes before those of all addresses.
func (c contest) yieldsTo(s catalog.ServiceDefinition) iter.Seq[want] {
	return func(yield func(want) bool) {
		number := c.index.Number
		port, _ := s.Port(number)
		kind := trafficOf(port)
		if kind == httpOnly {
			for address := range addressesAsked(s, c.in.cluster) {
				w := addressWanted(address, number)
				w.yields = true
				if !yield(w) || !yield(handshakesAlone(address, number)) || !c.yieldAround(address, yield) {
					return
				}
			}
		}
		if kind != httpOnly && kind != tlsOnly {
			return
		}
		for block := range s.BlocksIn(c.in.cluster) {
			if !c.yieldAround(block.String(), yield) {
				return
			}
		}
	}
}

// yieldAround yields the blocks that an address or a block is in.
func (c contest) yieldAround(asked string, yield func(want) bool) bool {
	inner, err := netip.ParsePrefix(asked)
	if err != nil {
		address, err := netip.ParseAddr(asked)
		if err != nil {
			return true
		}
		inner = netip.PrefixFrom(address, address.BitLen())
	}
	for block := range c.blocks.around(inner) {
		w := blockWanted(block, c.index.Number)
		w.name, w.yields = asked, true
		if !yield(w) {
			return false
		}
	}
	return true
}

// blockSet is blocks of addresses, with the lengths of prefixes that some of them have, the
// longest first.
type blockSet struct {
	has  map[netip.Prefix]struct{}
	bits []int
}

// around yields the blocks that another one is in, the smallest first.
func (b blockSet) around(inner netip.Prefix) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for _, bits := range b.bits {
			if bits > inner.Bits() {
				continue
			}
			block, err := inner.Addr().Prefix(bits)
			if err != nil { // of the other family
				continue
			}
			if _, is := b.has[block]; is && !yield(block) {
				return
			}
		}
	}
}

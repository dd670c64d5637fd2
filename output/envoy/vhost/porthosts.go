package vhost

import (
	"hash/fnv"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// Port is every virtual host of a port. It is made once for all views, from the
// one before: what did not change is taken over, with its bytes. It is immutable.
type Port struct {
	Index  *catalog.PortServices
	In     Key
	Claims claimIndex
	Runs   []*run
}

// Key is the key of what is made of an index: names are short in one domain, addresses
// are those in a cluster, and routes are as the settings have them.
type Key struct {
	Domain   string
	Cluster  string
	Settings *policy.Prepared // nil if nothing is said
}

// Of returns the virtual hosts of a port.
func Of(index *catalog.PortServices, key Key) *Port {
	made := index.Derive(key, func(c catalog.PortChange) any {
		was, _ := c.Before.(*Port)
		if was == nil || c.Many || len(was.Runs) == 0 {
			return NewPort(index, key, was)
		}
		return was.after(index, c.Hosts)
	})
	all, _ := made.(*Port)
	return all
}

// member is a service of the port, or one that hides it from some viewers; the latter
// has no virtual host.
type member struct {
	catalog.ServiceDefinition
	Host *Host
}

// NewPort makes the virtual hosts of a port, from those before a change; nil for none.
func NewPort(index *catalog.PortServices, in Key, was *Port) *Port {
	if was == nil {
		was = &Port{Claims: immutable.New[Claim, *Host](Claim.compare)}
	}
	b := building{index: index, in: in, claims: was.Claims.Edit()}
	b.members = b.merge(was.members, index.All())
	b.contest()
	return &Port{index, in, b.claims.Map(), cut(was.Runs, b.members)}
}

// building is a [portHosts] in the making.
type building struct {
	index   *catalog.PortServices
	in      Key
	claims  *immutable.Editor[Claim, *Host]
	members []member
	changed []Claim // that came or went
}

// merge enters services, with the virtual hosts of those that did not change.
func (b *building) merge(was iter.Seq[member], now iter.Seq[catalog.ServiceDefinition]) (members []member) {
	next, stop := iter.Pull(was)
	defer stop()
	old, more := next()
	for s := range now {
		for more && reach.CompareKeys(old.Key, s.Key) < 0 {
			b.drop(old.Host)
			old, more = next()
		}
		is, kept := member{ServiceDefinition: s}, false
		if more && old.Key == s.Key {
			if kept = old.Definition == s.Definition; kept {
				is = old
			} else {
				b.drop(old.Host) // before its successor enters, whose claims may equal its own
			}
			old, more = next()
		}
		if !kept {
			is.Host = b.enter(s)
		}
		members = append(members, is)
	}
	for ; more; old, more = next() {
		b.drop(old.Host)
	}
	return members
}

// enter makes the virtual host of a service, if requests are routed to it.
func (b *building) enter(s catalog.ServiceDefinition) *Host {
	port, ok := s.Port(b.index.Number)
	if kind := reach.TrafficOf(port); !ok || !reach.HasCluster(s, b.index.Number) || kind != reach.HTTP && kind != reach.Detected {
		return nil
	}
	h := NewHost(s, b.index.Number, b.in)
	for c := range h.Claims() {
		b.claims.Set(c, h)
		b.changed = append(b.changed, c)
	}
	return h
}

func (b *building) drop(h *Host) {
	if h == nil {
		return
	}
	for c := range h.Claims() {
		b.claims.Delete(c)
		b.changed = append(b.changed, c)
	}
}

// contest finds out anew who shares a domain with somebody else, of those that share
// one with what changed.
func (b *building) contest() {
	replaced := otherwiseContested(b.claims.View(), b.changed)
	for i, m := range b.members {
		if h := replaced[m.Key]; h != nil {
			b.members[i].Host = h
			for c := range h.Claims() {
				b.claims.Set(c, h)
			}
		}
	}
}

// cut divides services into runs, at places that depend on hosts alone: a service that
// comes changes one run, or makes two of it. Those that are as they were stay.
func cut(was []*run, all []member) (runs []*run) {
	before := make(map[string]*run, len(was))
	for _, r := range was {
		before[r.first()] = r
	}
	begin := 0
	for i := range all {
		if i+1 < len(all) && (all[i+1].Key.Host == all[i].Key.Host || !Begins(all[i+1].Key.Host)) {
			continue
		}
		members := all[begin : i+1]
		begin = i + 1
		if r := before[members[0].Key.Host]; r != nil && slices.Equal(r.Members, members) {
			runs = append(runs, r)
		} else {
			runs = append(runs, newRun(slices.Clone(members)))
		}
	}
	return runs
}

// runLength is how many hosts a run has on average.
const runLength = 64

// Begins reports whether a run begins with a host.
func Begins(host string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return h.Sum32()%runLength == 0
}

// members yields all services by host.
func (a *Port) members(yield func(member) bool) { membersOf(a.Runs)(yield) }

func membersOf(runs []*run) iter.Seq[member] {
	return func(yield func(member) bool) {
		for _, r := range runs {
			for _, m := range r.Members {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// SeenBy puts together what a viewer sees.
func (a *Port) SeenBy(v catalog.Viewer) *Pieces {
	p := &Pieces{}
	for _, r := range a.Runs {
		p.Add(r.seenBy(a, v))
	}
	return p
}

// Find returns the virtual host of a service; nil if it has none.
func (a *Port) Find(s catalog.ServiceDefinition) *Host {
	at, found := slices.BinarySearchFunc(a.Runs, s.Key.Host, func(r *run, host string) int {
		switch {
		case r.last() < host:
			return -1
		case r.first() > host:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return nil
	}
	return a.Runs[at].find(s)
}

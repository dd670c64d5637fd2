package envoy

import (
	"hash/fnv"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// portHosts is every virtual host of a port. It is made once for all views, from the
// one before: what did not change is taken over, with its bytes. It is immutable.
type portHosts struct {
	index  *catalog.PortServices
	in     hostsIn
	claims claimIndex
	runs   []*run
}

// hostsIn is the key of what is made of an index: names are short in one domain, addresses
// are those in a cluster, and routes are as the settings have them.
type hostsIn struct {
	domain   string
	cluster  string
	settings *policy.Prepared // nil if nothing is said
}

// hostsOf returns the virtual hosts of a port.
func hostsOf(index *catalog.PortServices, v View) *portHosts {
	key := hostsIn{v.proxy.domain, v.proxy.cluster, v.settings}
	made := index.Derive(key, func(c catalog.PortChange) any {
		was, _ := c.Before.(*portHosts)
		if was == nil || c.Many || len(was.runs) == 0 {
			return newPortHosts(index, key, was)
		}
		return was.after(index, c.Hosts)
	})
	all, _ := made.(*portHosts)
	return all
}

// member is a service of the port, or one that hides it from some viewers; the latter
// has no virtual host.
type member struct {
	catalog.ServiceDefinition
	host *portHost
}

func newPortHosts(index *catalog.PortServices, in hostsIn, was *portHosts) *portHosts {
	if was == nil {
		was = &portHosts{claims: immutable.New[claim, *portHost](claim.compare)}
	}
	b := building{index: index, in: in, claims: was.claims.Edit()}
	b.members = b.merge(was.members, index.All())
	b.contest()
	return &portHosts{index, in, b.claims.Map(), cut(was.runs, b.members)}
}

// building is a [portHosts] in the making.
type building struct {
	index   *catalog.PortServices
	in      hostsIn
	claims  *immutable.Editor[claim, *portHost]
	members []member
	changed []claim // that came or went
}

// merge enters services, with the virtual hosts of those that did not change.
func (b *building) merge(was iter.Seq[member], now iter.Seq[catalog.ServiceDefinition]) (members []member) {
	next, stop := iter.Pull(was)
	defer stop()
	old, more := next()
	for s := range now {
		for more && compareKeys(old.Key, s.Key) < 0 {
			b.drop(old.host)
			old, more = next()
		}
		is, kept := member{ServiceDefinition: s}, false
		if more && old.Key == s.Key {
			if kept = old.Definition == s.Definition; kept {
				is = old
			} else {
				b.drop(old.host) // before its successor enters, whose claims may equal its own
			}
			old, more = next()
		}
		if !kept {
			is.host = b.enter(s)
		}
		members = append(members, is)
	}
	for ; more; old, more = next() {
		b.drop(old.host)
	}
	return members
}

// enter makes the virtual host of a service, if requests are routed to it.
func (b *building) enter(s catalog.ServiceDefinition) *portHost {
	port, ok := s.Port(b.index.Number)
	if kind := trafficOf(port); !ok || !hasCluster(s, b.index.Number) || kind != httpOnly && kind != sniffed {
		return nil
	}
	h := newPortHost(s, b.index.Number, b.in)
	for c := range h.claims() {
		b.claims.Set(c, h)
		b.changed = append(b.changed, c)
	}
	return h
}

func (b *building) drop(h *portHost) {
	if h == nil {
		return
	}
	for c := range h.claims() {
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
			b.members[i].host = h
			for c := range h.claims() {
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
		if i+1 < len(all) && (all[i+1].Key.Host == all[i].Key.Host || !begins(all[i+1].Key.Host)) {
			continue
		}
		members := all[begin : i+1]
		begin = i + 1
		if r := before[members[0].Key.Host]; r != nil && slices.Equal(r.members, members) {
			runs = append(runs, r)
		} else {
			runs = append(runs, newRun(slices.Clone(members)))
		}
	}
	return runs
}

// runLength is how many hosts a run has on average.
const runLength = 64

// begins reports whether a run begins with a host.
func begins(host string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return h.Sum32()%runLength == 0
}

// members yields all services by host.
func (a *portHosts) members(yield func(member) bool) { membersOf(a.runs)(yield) }

func membersOf(runs []*run) iter.Seq[member] {
	return func(yield func(member) bool) {
		for _, r := range runs {
			for _, m := range r.members {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// seenBy puts together what a viewer sees.
func (a *portHosts) seenBy(v View) *pieces {
	p := &pieces{}
	for _, r := range a.runs {
		p.add(r.seenBy(a, v))
	}
	return p
}

// find returns the virtual host of a service; nil if it has none.
func (a *portHosts) find(s catalog.ServiceDefinition) *portHost {
	at, found := slices.BinarySearchFunc(a.runs, s.Key.Host, func(r *run, host string) int {
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
	return a.runs[at].find(s)
}

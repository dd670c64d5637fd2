package push

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Type is a resource type of an engine. The types of a [Producer] are given by
// [Producer.Type].
type Type int

// Row is the index of a resource type in its producer's table.
type Row int

// TypeSpec is one row of a producer's table: how resources of a type are delivered, and the
// types that they refer to. Only Name must be set.
type TypeSpec struct {
	// Name is the type's name in the protocol, such as a type URL.
	Name string
	// Whole types go to a [WholeState] subscriber as the full set each time: a
	// resource that is not in it is deleted. Others are sent one by one.
	Whole bool
	// Needs names types that are sent first. A resource of this type waits for the resources
	// of these types that it refers to and that the subscriber asks for. The wait ends when
	// they are ACKed, NACKed or overdue. See [Referrer].
	Needs []string
	// Brings names types that are sent right behind. The client of a resource of this type
	// waits for the resources of these types that it refers to, before it uses the resource.
	// See [Referrer].
	Brings []string
	// Within returns the name of the resource that brings a resource of this type; nil if a
	// wildcard for the type means all resources. With Within, clients forget resources whose
	// bringing resource they do not ask for. They are not sent such resources unless they have
	// them.
	Within func(name string) string
	// Awaited means that clients wait anew for a resource of this type whenever a resource
	// that brings it is sent. Then it is sent as well, even if they have it.
	Awaited bool
	// Increments means that a [Delta] subscriber is sent a resource as the difference from the
	// revision that it holds, see [Incremental]. Versions that it claims to hold when it
	// connects do not count.
	Increments bool
	// Fixed means that all versions of a resource refer to the same names. A resource that a
	// subscriber has waits for none of its needs.
	Fixed bool
	// Together puts all due resources into one response, however many there are: clients take
	// the first response for the complete set.
	Together bool
	// Exclusive means that a client may NACK a resource because of other resources of the
	// type. A resource NACKed alone is retried once the client has ACKed another of the type.
	Exclusive bool
	// Aggregate reports whether one resource contains many services, for a kind of clients;
	// nil means none does. An aggregate is sent even if the subscriber NACKed one of its
	// needs. A resource of a single service is held back then.
	Aggregate func(kind string) bool
	// Audience returns the keys through which changes find a client, such as its namespace,
	// its addresses or its account. Nil means its namespace.
	Audience func(Client) []string
	// Absent returns the answer to a client that asks for a name which does not exist. Nil
	// means [Removal] where there are removals, and otherwise [Empty]. With Empty, a
	// subscriber that names a resource is also sent the empty resource when the resource is
	// removed. In a whole type, such names stay in the full set of a subscriber with few
	// resources; others are removed.
	Absent func(kind string, m Mode) Absence
	// Void returns an empty resource of that name, for clients that cannot be sent a removal.
	// Nil if the type has none. A result without a body means that the name has none, and
	// nothing is sent.
	Void func(name string) Encoded
	// Debounce delays changes for subscribers of a mode. The zero value does not, because
	// back-pressure batches better: a busy subscriber takes the newest when it is ready.
	Debounce [modes]Debounce
	// Apart lists resources with a debounce of their own; the first match counts.
	Apart []NameDebounce
}

// NameDebounce delays changes of some resources of a type by themselves. They and the rest
// do not wait for each other.
type NameDebounce struct {
	Is       func(name string) bool
	Debounce [modes]Debounce
	// Replace delays removals of other resources of the type as well, if they come with such a
	// change: the changed resource may replace them.
	Replace bool
}

// Absence is the answer to a client that asks for a name which does not exist.
type Absence int

// The answers. All of them keep the subscription: the resource is sent once it exists.
const (
	Removal Absence = iota // a removal, which only [Delta] and whole types have
	Empty                  // [TypeSpec].Void
	Silence                // no answer: the client waits, and keeps its resource where there is no removal
)

func (s *TypeSpec) audience(c Client) []string {
	if s.Audience == nil {
		return []string{c.Namespace}
	}
	return s.Audience(c)
}

func (s *TypeSpec) absent(kind string, m Mode) Absence {
	switch {
	case s.Absent != nil:
		return s.Absent(kind, m)
	case m == Delta || s.Whole:
		return Removal
	default:
		return Empty
	}
}

// Mode is how a subscriber takes the resources of a type.
type Mode int

// The modes.
const (
	// WholeState subscribers name all they want in each request, and are sent
	// the full set of a [TypeSpec].Whole type each time (xDS: state of the world).
	WholeState Mode = iota
	// Delta subscribers add and drop names, and are sent the changes.
	Delta

	modes
)

// Client describes a subscriber, as far as its view may depend on that. Each type depends
// on some of the fields: see [World].View and [TypeSpec].Audience.
type Client struct {
	Kind      string // the flavour of resources it understands, such as "envoy"
	Namespace string // of its workload; empty if it has none
	Labels    model.Labels
	Locality  model.Locality
	Network   string
	Node      string   // the node of its workload, as the client declares
	Cluster   string   // of that node, as the client declares
	Addresses []string // of its workload, as the client declares
	// Extensions are the extensions of its program, as the client declares, if resources
	// depend on them.
	Extensions []string
	Release    [2]uint32 // of its program, major and minor, as the client declares; zero if undeclared
	Account    string    // the identity proven by its certificate; empty if none is
	Revision   string    // of a client that is a control plane, as the client declares
	Increments bool      // takes all types on one stream, and each in the mode [Delta]
	Proxy      Proxy     // zero if the client is not in the path of others
}

// Proxy describes a proxy in the path of workloads, as the client declares.
type Proxy struct {
	Role         string // such as "sidecar" or "router"
	Interception string // how connections reach it, such as "REDIRECT"
	Binds        []Bind // of its workload, by port, each port once
	Outbound     Ports  // ports on loopback for services, if nothing redirects connections to the proxy
	Unprivileged bool   // cannot bind ports below 1024
}

// FirstUnprivilegedPort is the first of the ports that any program may bind.
const FirstUnprivilegedPort = 1024

// Bind is the address at which a proxy listens for its workload, and the workload's own.
type Bind struct{ At, To netip.AddrPort }

// typeInfo is a type in the engine. It is immutable but for counts.
type typeInfo struct {
	TypeSpec
	producer *Producer // nil for a type without a producer
	row      Row

	needs, brings []Type
	broughtBy     []Type // types that bring this one
	// referrers are the types that may refer to this one, directly or through
	// others: a removal waits for them.
	referrers []Type

	admitted *admission // nil for a type of a producer

	counts *typeCounters
	lanes  [modes]*lane   // nil for modes without a debounce
	apart  [][modes]*lane // likewise, of the resources with a debounce of their own
}

// lane returns the debounce class of a resource; nil if its changes do not wait.
func (i *typeInfo) lane(m Mode, name string) *lane {
	for n, of := range i.Apart {
		if of.Is(name) {
			return i.apart[n][m]
		}
	}
	return i.lanes[m]
}

// replaces reports whether the changes of a debounce class may replace removed resources.
func (i *typeInfo) replaces(m Mode, l *lane) bool {
	for n, of := range i.Apart {
		if of.Replace && i.apart[n][m] == l {
			return true
		}
	}
	return false
}

// lanesOf yields all debounce classes of a mode.
func (i *typeInfo) lanesOf(m Mode) iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
		if l := i.lanes[m]; l != nil && !yield(l) {
			return
		}
		for _, of := range i.apart {
			if l := of[m]; l != nil && !yield(l) {
				return
			}
		}
	}
}

// table is all types of an engine. It is replaced and never written to.
type table struct {
	types  []*typeInfo
	order  []Type // of delivery
	byName map[string]Type
}

// with returns a table with more types. Order names types in the order of delivery; types
// that it does not name follow in the order in which they were added.
func (b *table) with(order []string, added ...*typeInfo) *table {
	return tableOf(order, slices.Concat(b.types, added))
}

// replacing returns a table with another type in the place of one.
func (b *table) replacing(order []string, t Type, by *typeInfo) *table {
	types := slices.Clone(b.types)
	types[t] = by
	return tableOf(order, types)
}

func tableOf(order []string, types []*typeInfo) *table {
	next := &table{byName: map[string]Type{}}
	for _, info := range types {
		next.byName[info.Name] = Type(len(next.types))
		own := *info
		next.types = append(next.types, &own)
	}
	for t := range next.types {
		next.order = append(next.order, Type(t))
	}
	place := func(t Type) int {
		if i := slices.Index(order, next.types[t].Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(next.order, func(a, b Type) int { return place(a) - place(b) })
	next.relate()
	return next
}

// relate resolves the types that the rows name. It ignores names of types that the engine
// does not have: a producer may run without another.
func (b *table) relate() {
	for _, info := range b.types {
		info.needs, info.brings = b.named(info.Needs), b.named(info.Brings)
		info.broughtBy, info.referrers = nil, nil
	}
	for t, info := range b.types {
		for _, to := range info.brings {
			b.types[to].broughtBy = append(b.types[to].broughtBy, Type(t))
		}
	}
	for t := range b.types {
		b.refer(Type(t), Type(t))
	}
}

// refer enters the types that refer to from, directly or through others, as
// referrers of to.
func (b *table) refer(to, from Type) {
	for t, info := range b.types {
		direct := slices.Contains(info.needs, from) || slices.Contains(info.brings, from)
		if !direct || Type(t) == to || slices.Contains(b.types[to].referrers, Type(t)) {
			continue
		}
		b.types[to].referrers = append(b.types[to].referrers, Type(t))
		b.refer(to, Type(t))
	}
}

func (b *table) named(names []string) (list []Type) {
	for _, name := range names {
		if t, ok := b.byName[name]; ok {
			list = append(list, t)
		}
	}
	return list
}

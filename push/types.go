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

// Row is a resource type's place in its producer's table.
type Row int

// TypeSpec is one row of a producer's table: how resources of a type are
// delivered and what they refer to. Only Name must be set.
type TypeSpec struct {
	// Name is the type's name in the protocol, such as a type URL.
	Name string
	// Whole types go to a [WholeState] subscriber as the full set each time: a
	// resource that is not in it is deleted. Others are sent one by one.
	Whole bool
	// Needs names types whose resources, as far as one of this type refers to
	// them and the subscriber asks for them, are sent first. It waits until they
	// are ACKed, NACKed or overdue. See [Referrer].
	Needs []string
	// Brings names types whose resources, as far as one of this type refers to
	// them, are sent right behind it: its client waits for them before it uses
	// this one. See [Referrer].
	Brings []string
	// Within returns the name of the resource that brings one of this type; nil if who
	// asks for all of the type means all there are. Otherwise clients forget those of which they
	// do not ask for what brings them, so they are sent none of these that they lack.
	Within func(name string) string
	// Awaited says that clients wait anew for a resource of this type whenever
	// one that brings it is sent. Then it is sent as well, even if they have it.
	Awaited bool
	// Increments says that a [Delta] subscriber is sent a resource as what differs from
	// the revision that it holds, see [Incremental]. What it says it holds when it
	// connects does not count.
	Increments bool
	// Fixed says that all versions of a resource refer to the same names. One that a
	// subscriber has waits for nothing that it needs.
	Fixed bool
	// Together has everything that is to be sent go in one response, however much that
	// is: clients take the first for all there is.
	Together bool
	// Exclusive says that a client may NACK a resource for what it has of others of the
	// type. One that was NACKed by itself is tried again once the client has ACKed
	// something else of the type.
	Exclusive bool
	// Aggregate reports whether for a kind of clients one resource stands for many
	// services; nil is for none. It goes out even if the subscriber NACKed something it
	// needs, where one of a single service stays back.
	Aggregate func(kind string) bool
	// Audience returns the keys through which changes find a client, such as its
	// namespace, its addresses or its account. Nil means its namespace.
	Audience func(Client) []string
	// Absent is the answer to a client that asks for a name which stands for
	// nothing. Nil means [Removal] where there are removals, and else [Empty]. With
	// Empty, a subscriber is sent that what it asks for by name is empty now, too. Of a
	// whole type such names stay in the full set of a subscriber that has few resources;
	// others are removed.
	Absent func(kind string, m Mode) Absence
	// Void returns an empty resource of that name, for clients that cannot be sent a
	// removal. Nil if the type has none, and without a body if the name has none:
	// then they are sent nothing.
	Void func(name string) Encoded
	// Debounce delays changes for subscribers of a mode. The zero value does not,
	// because back-pressure batches better: a busy subscriber takes the newest when
	// it is ready.
	Debounce [modes]Debounce
	// Apart are resources whose changes wait otherwise, each by the first that it is of.
	Apart []NameDebounce
}

// NameDebounce delays changes of some resources of a type by themselves, so that neither
// they nor the rest wait for each other.
type NameDebounce struct {
	Is       func(name string) bool
	Debounce [modes]Debounce
	// Replace has removals of other resources of the type wait as well, if they come with
	// such a change: it may be what takes their place.
	Replace bool
}

// Absence is the answer to a client that asks for a name which stands for nothing.
type Absence int

// The answers. All of them keep the subscription: once the name stands for
// something, that is sent.
const (
	Removal Absence = iota // a removal, which only [Delta] and whole types have
	Empty                  // [TypeSpec].Void
	Silence                // nothing: the client waits for as long as it likes, and keeps what it has where there is no removal
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
	// Delta subscribers add and drop names, and are sent what changed.
	Delta

	modes
)

// Client describes a subscriber, as far as its view may depend on that. Each type
// depends on some of the fields: see [World].View and [TypeSpec].Audience.
type Client struct {
	Kind      string // the flavour of resources it understands, such as "envoy"
	Namespace string // of its workload; empty if it has none
	Labels    model.Labels
	Locality  model.Locality
	Network   string
	Node      string   // that its workload is on, as it says
	Cluster   string   // of that node, as it says
	Addresses []string // of its workload, as it says
	// Extensions are those of its program, as it says, that resources depend on.
	Extensions []string
	Release    [2]uint32 // of its program, major and minor, as it says; zero if it does not
	Account    string    // the identity proven by its certificate; empty if none is
	Revision   string    // of the control plane that it is, as it says
	Increments bool      // it takes all types on one stream, and each in the mode [Delta]
	Proxy      Proxy     // zero if it is not one that stands in the path of others
}

// Proxy is how a client stands in the path of workloads, as it says.
type Proxy struct {
	Role         string // such as "sidecar" or "router"
	Interception string // how connections reach it, such as "REDIRECT"
	Binds        []Bind // of its workload, by port, each port once
	Outbound     Ports  // at which it listens on loopback for services, if nothing redirects connections to it
	Unprivileged bool   // it cannot bind ports below 1024
}

// FirstUnprivilegedPort is the first of the ports that any program may bind.
const FirstUnprivilegedPort = 1024

// Bind is where a proxy listens for its workload, and where the workload itself does.
type Bind struct{ At, To netip.AddrPort }

// typeInfo is a type as the engine knows it. It is immutable but for counts.
type typeInfo struct {
	TypeSpec
	producer *Producer // nil if nobody makes resources of the type
	row      Row

	needs, brings []Type
	broughtBy     []Type // types that bring this one
	// referrers are the types that may refer to this one, directly or through
	// others: a removal waits for them.
	referrers []Type

	admitted *admission // nil for a type of a producer

	counts *typeCounters
	lanes  [modes]*lane   // nil for modes that do not wait
	apart  [][modes]*lane // likewise, of the resources that wait by themselves
}

// lane is where changes of a resource wait; nil if they do not.
func (i *typeInfo) lane(m Mode, name string) *lane {
	for n, of := range i.Apart {
		if of.Is(name) {
			return i.apart[n][m]
		}
	}
	return i.lanes[m]
}

// replaces reports whether a lane is of changes that take the place of what is removed.
func (i *typeInfo) replaces(m Mode, l *lane) bool {
	for n, of := range i.Apart {
		if of.Replace && i.apart[n][m] == l {
			return true
		}
	}
	return false
}

// lanesOf yields all lanes of a mode.
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

// with returns a table with more types. Order names types in the order of
// delivery; those it does not name follow in the order in which they were added.
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

// relate finds the types that the rows name. It ignores names of types that the
// engine does not have: a producer may run without another.
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

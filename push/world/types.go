package world

// Type is a resource type of an engine.
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
	// Parent returns the name of the resource that brings a resource of this type, such as the
	// route configuration of a virtual host. Nil means that a wildcard for the type is a
	// subscription to all resources. With Parent, a client forgets resources of parents that it
	// is not subscribed to, and is sent such a resource only if it has it.
	Parent func(name string) string
	// Awaited means that a client waits for a resource of this type whenever it is sent a
	// resource that brings it, as a warming Envoy cluster waits for its load assignment. The
	// resource is then sent again, even if the client has it.
	Awaited bool
	// Increments means that a [Delta] subscriber is sent a resource as the difference from the
	// revision that it holds, see [Incremental]. Versions listed by the client when it connects
	// do not count.
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
	// Empty returns the empty resource of a name, for clients that cannot be sent a removal.
	// Nil means that the type has none. A result without a body means that this name has none:
	// nothing is sent then.
	Empty func(name string) Encoded
	// Debounce delays changes, by the subscriber's mode. The zero value delays nothing: a busy
	// subscriber is sent the newest version once it is ready, which batches better.
	Debounce [Modes]Debounce
	// NameDebounces are the debounces of single resources, in place of Debounce. The first
	// that matches a name counts.
	NameDebounces []NameDebounce
}

// NameDebounce delays changes of some resources of a type. These changes and the other
// changes of the type do not wait for each other.
type NameDebounce struct {
	// Match reports whether a resource has this debounce.
	Match func(name string) bool
	// Debounce is the delay, by the subscriber's mode.
	Debounce [Modes]Debounce
	// DelayRemovals also delays removals of other resources of the type that come in the same
	// step: the changed resource may replace them.
	DelayRemovals bool
}

// Absence is the answer to a client that asks for a name which does not exist.
type Absence int

// The answers. All of them keep the subscription: the resource is sent once it exists.
const (
	Removal Absence = iota // a removal, which only [Delta] and whole types have
	Empty                  // [TypeSpec].Empty
	Silence                // no answer: the client waits, and keeps its resource where there is no removal
)

// DebounceClass returns 0 for a resource with the debounce of its type, and n for one with the
// n-th of NameDebounces.
func (s *TypeSpec) DebounceClass(name string) int {
	for n, of := range s.NameDebounces {
		if of.Match(name) {
			return n + 1
		}
	}
	return 0
}

// AudienceOf returns the keys through which changes find a client.
func (s *TypeSpec) AudienceOf(c Client) []string {
	if s.Audience == nil {
		return []string{c.Namespace}
	}
	return s.Audience(c)
}

// AbsentFor returns the answer to a kind of client that asks for a name which does not exist.
func (s *TypeSpec) AbsentFor(kind string, m Mode) Absence {
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

	Modes // number of modes
)

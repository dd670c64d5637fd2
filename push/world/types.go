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
	Debounce [Modes]Debounce
	// Apart lists resources with a debounce of their own; the first match counts.
	Apart []NameDebounce
}

// NameDebounce delays changes of some resources of a type by themselves. They and the rest
// do not wait for each other.
type NameDebounce struct {
	Is       func(name string) bool
	Debounce [Modes]Debounce
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

// DebounceClass returns 0 for a resource with the debounce of its type, and otherwise n for the
// n-th of Apart.
func (s *TypeSpec) DebounceClass(name string) int {
	for n, of := range s.Apart {
		if of.Is(name) {
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

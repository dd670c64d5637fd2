package push

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"math/bits"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Type is a resource type of an output: its index in [Config].Types, which is
// also the order in which types are delivered.
type Type int

// TypeSpec says how resources of a type are delivered.
type TypeSpec struct {
	// Name is the type's name in the protocol, such as a type URL.
	Name string
	// Whole types go to a [WholeState] subscriber as the full set each time: a
	// resource that is not in it is deleted. Others are sent one by one.
	Whole bool
	// RemoveLast delays removals until later types are settled, so that nothing
	// still refers to what is removed.
	RemoveLast bool
	// With names types whose resource of the same name is sent again whenever
	// one of this type is sent because it changed.
	With []Type
	// Needs names types whose resource of the same name must be accepted first,
	// if the subscriber has subscribed to it.
	Needs []Type
	// SilentTo names kinds of clients, as in [View], of which a [Delta]
	// subscriber that asks for what does not exist is told nothing until it does,
	// because such a client takes a removal for an answer and waits for ever.
	SilentTo []string
}

// View is what a subscriber sees, as far as it differs from what others see.
// Equal views share one set of resources. Subscribers are told apart by
// nothing else, so a field that comes to matter is added here: locality and
// network will be, to order failover.
type View struct {
	// Kind is the flavour of resources the client understands, such as "envoy".
	Kind string
	// Namespace is that of the client's workload; empty if it has none.
	Namespace string
	// Scope is what narrows the view, nil if nothing does. It is compared by ==
	// and stands for its content: another content is another scope.
	Scope any
}

// Client is what a subscriber is, as far as it decides what it sees.
type Client struct {
	Kind      string // as in [View]
	Namespace string
	Labels    model.Labels // of its workload
}

// World is one immutable state of everything an output serves.
type World interface {
	// View returns what a client sees.
	View(c Client) View
	// Names yields every name of a type that the view sees, for wildcards.
	Names(v View, t Type) iter.Seq[string]
	// Find returns what a name stands for in the view.
	Find(v View, t Type, name string) (Subject, bool)
	// Void returns a resource that says "there is nothing here", for types
	// whose protocol has no removal; false if the type has none.
	Void(t Type, name string) (Encoded, bool)
	// Complete reports whether every source has been listed, so that a name
	// which is not found is known not to exist.
	Complete() bool
}

// Subject is what a name stands for. Subjects are compared with ==; equal ones
// have equal content.
type Subject interface {
	// Slot is a comparable key that stays the same through all revisions of the
	// subject, and differs from that of any other.
	Slot() any
	// Encode returns the subject's content. It is called once per revision, on
	// any goroutine.
	Encode() Encoded
}

// Encoded is the content of a resource.
type Encoded struct {
	Name    string
	Version Version
	Body    []byte // as the protocol carries it; never written again
}

// Resource is an encoded resource with what the protocol writes before it. It
// is immutable and shared by every stream.
type Resource struct {
	Encoded
	// Heads are what goes before Body for a [WholeState] and for a [Delta] subscriber.
	Heads [2][]byte
}

func (r *Resource) size(m Mode) int { return len(r.Heads[m]) + len(r.Body) }

// Update is a step from one world to the next.
type Update struct {
	World   World
	Changed []Changed
	// Reviewed are the namespaces whose clients may have another view now; "*"
	// stands for all. It has to hold only those; their views are compared.
	Reviewed []string
	// Committed is when the store took the oldest change in the step; zero if unknown.
	Committed time.Time
}

// Changed names a resource that may differ from the world before. To name one
// too many costs a comparison; to leave one out loses an update.
type Changed struct {
	Type Type
	Name string
	// Namespaces are those whose views may see the resource, now or before; nil means all.
	Namespaces []string
	// Urgent says that what clients hold of it leads them astray until they have
	// the newest, such as to an endpoint that is gone. It reaches them before
	// what is not.
	Urgent bool
}

// Version is a hash of content: equal on every replica and after every restart.
type Version [16]byte

// VersionOf hashes content given in parts. Where one part ends and the next
// begins matters.
func VersionOf(parts ...[]byte) Version {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return Version(h.Sum(nil)[:16])
}

func (v Version) String() string { return hex.EncodeToString(v[:]) }

// ParseVersion reads what [Version.String] wrote; ok is false for anything else.
func ParseVersion(s string) (v Version, ok bool) {
	if len(s) != hex.EncodedLen(len(v)) { // a longer one would be written past the end
		return Version{}, false
	}
	if _, err := hex.Decode(v[:], []byte(s)); err != nil {
		return Version{}, false
	}
	return v, true
}

// plus and minus make versions of sets: the sum of its members' hashes modulo
// 2¹²⁸, whatever their order.
func (v Version) plus(o Version) Version {
	vl, vh := v.words()
	ol, oh := o.words()
	low, carry := bits.Add64(vl, ol, 0)
	high, _ := bits.Add64(vh, oh, carry)
	return fromWords(low, high)
}

func (v Version) minus(o Version) Version {
	vl, vh := v.words()
	ol, oh := o.words()
	low, borrow := bits.Sub64(vl, ol, 0)
	high, _ := bits.Sub64(vh, oh, borrow)
	return fromWords(low, high)
}

func (v Version) words() (low, high uint64) {
	return binary.LittleEndian.Uint64(v[:8]), binary.LittleEndian.Uint64(v[8:])
}

func fromWords(low, high uint64) (v Version) {
	binary.LittleEndian.PutUint64(v[:8], low)
	binary.LittleEndian.PutUint64(v[8:], high)
	return v
}

package push

import (
	"iter"
	"sync/atomic"
	"time"
)

// World is one immutable state of everything a [Producer] serves. Its methods
// are functions of that state: they look things up in memory, do no I/O, take no
// lock that their caller may hold, and wait for nothing.
//
//   - The dispatcher calls View, Find and Complete with no lock held. While one of
//     them takes its time, everybody is served the world before.
//   - A worker calls View, Names, Find, Complete, [Subject].Encode and
//     [Referrer].Refers while it owns one subscriber, whose lock it holds. While one
//     of them takes its time, that subscriber's requests and its Close wait, and so
//     does a worker that needs the same subject encoded. Nobody else waits.
//     docs/design/0018 says why.
//
// [Producer.Publish] may be called at any time, from inside a look-up as well, and
// so may the methods of other subscribers. The methods of the subscriber whose turn
// it is never return if they are called from there.
type World interface {
	// View returns what a client sees of a type: a comparable value that stands
	// for its content. Equal views share one set of resources, so a view holds
	// what the type depends on and nothing else.
	View(r Row, c Client) View
	// Names yields every name of a type that is in the view, for wildcards.
	Names(v View, r Row) iter.Seq[string]
	// Find returns what a name stands for in the view.
	Find(v View, r Row, name string) (Subject, bool)
	// Complete reports whether every source has been listed, so that a name
	// that is not found is known not to exist.
	Complete() bool
}

// View is what a client sees of a type. The producer chooses what it is made
// of; views are compared with ==.
type View any

// Subject is what a name stands for. Subjects are compared with ==; equal ones
// have equal content.
type Subject interface {
	// Slot is a comparable key that stays the same through all revisions of the
	// subject, and differs from that of any other: of other names, and of other
	// variants of the same name.
	Slot() any
	// Encode returns the subject's content. It is called once per revision, on
	// any goroutine.
	Encode() Encoded
}

// Referrer is a [Subject] that refers to others. It is asked only while
// something of a type that it [TypeSpec].Needs is on its way or NACKed, and
// when it is sent, for what it [TypeSpec].Brings.
type Referrer interface {
	// Refers yields the names of the resources of another type, given by the
	// type's name, that this one refers to.
	Refers(to string) iter.Seq[string]
}

// Incremental is a [Subject] of a type with [TypeSpec].Increments.
type Incremental interface {
	Subject
	// Revision is the version that the subject's encoded forms have.
	Revision() Version
	// Since returns what a subscriber is sent that holds the revision of a version.
	// The zero version stands for one that nobody knows: then it is sent what takes the
	// place of anything.
	Since(held Version) Subject
}

// Unrepeatable is a [Subject] that a client mishandles if two messages bring it with the
// same bytes. It is encoded for each message, and cannot be shared.
type Unrepeatable interface {
	Subject
	// EncodeOnce is as Encode, of the same version, and returns other bytes each time.
	EncodeOnce() Encoded
}

// Encoded is the content of a resource.
type Encoded struct {
	Name    string
	Version Version
	Body    []byte    // as the protocol carries it; never written again
	Tail    Fragments // what follows Body; nil if nothing does
	Framed  bool      // the body has what the protocol writes before resources, of any number of them
}

// Resource is an encoded resource with the bytes that the protocol writes before it. Its
// content is immutable, and every stream shares it.
type Resource struct {
	Encoded
	// Heads are what goes before Body for a [WholeState] and for a [Delta] subscriber.
	Heads [modes][]byte

	label         // for subscribers that keep the resource
	shared *label // for those that do not

	noted *atomic.Bool // whether its name is in [Engine.sentNames]
}

func (r *Resource) size(m Mode) int { return len(r.Heads[m]) + r.Size() }

// Update is a step from one world to the next.
type Update struct {
	World   World
	Changed []Changed
	// Remembers says that the world has all that was ever sent here, be it by an
	// earlier process, although some source may never have been listed. A full set then
	// does not wait for that one if its subscriber cannot say what it holds.
	Remembers bool
	// Waited says that each source was listed or was waited for long enough. A full set
	// does not wait for the others then, whatever its subscriber holds.
	Waited bool
	// Reviewed are the audience keys of clients that may have another view now;
	// "*" stands for all. It has to hold only those; their views are compared.
	Reviewed []string
	// Committed is when the store took the oldest change in the step; zero if unknown.
	Committed time.Time
}

// Changed names a resource that may differ from the world before. To name one
// too many costs a comparison; to leave one out loses an update.
type Changed struct {
	Row  Row
	Name string
	// Audience are the audience keys of the clients whose views may see the
	// resource, now or before; nil means all. Steps that follow each other are
	// united: a client whose view changes and changes back meanwhile is not found by
	// comparing views, so its keys are among those of what changed in between.
	Audience []string
	// Urgent says that the version that clients hold leads them astray, such as to
	// an endpoint that is gone. The change reaches them before those that are not
	// urgent.
	Urgent bool
	// Revoked says that clients that lost the resource may not keep it any longer:
	// its removal waits for nothing.
	Revoked bool
}

// nothing is the world of types that nobody makes resources of.
type nothing struct{}

func (nothing) View(Row, Client) View                  { return nil }
func (nothing) Names(View, Row) iter.Seq[string]       { return func(func(string) bool) {} }
func (nothing) Find(View, Row, string) (Subject, bool) { return nil, false }
func (nothing) Complete() bool                         { return true }

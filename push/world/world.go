package world

import (
	"fmt"
	"iter"
	"time"
)

// World is one immutable state of everything a [Producer] serves. Its methods are functions
// of that state. They look up data in memory, do no I/O, take no lock that their caller may
// hold, and wait for nothing.
//
//   - The dispatcher calls View, Find and Complete with no lock held. While such a call
//     runs, every subscriber is served the previous world.
//   - A worker calls View, Names, Find, Complete, [Subject].Encode and
//     [Referrer].Refers while it owns one subscriber and holds its lock. While such a call
//     runs, that subscriber's requests and its Close wait. So
//     does a worker that needs the same subject encoded. Nothing else waits.
//     docs/design/0018 says why.
//
// [Producer.Publish] may be called at any time, also from inside a look-up. So may the
// methods of other subscribers. The methods of the subscriber in its turn never return if
// they are called from there.
type World interface {
	// View returns a client's view of a type: a comparable value that identifies its content.
	// Equal views share one set of resources, so a view contains exactly the properties that
	// the type depends on.
	View(r Row, c Client) View
	// Names yields every name of a type that is in the view, for wildcards.
	Names(v View, r Row) iter.Seq[string]
	// Find returns the subject of a name in the view.
	Find(v View, r Row, name string) (Subject, bool)
	// Complete reports whether every source has been listed. A name that is not found is then
	// known not to exist.
	Complete() bool
}

// View identifies the resources of a type that a client may see. The producer chooses its
// Go type; views are compared with ==.
type View any

// Scoped is a [View] that a scope narrows.
type Scoped interface {
	// Scope returns the scope that narrows the view; nil if there is none.
	Scope() fmt.Stringer
}

// SharedView is a view that several clients have. Equal views share one, so that a pointer
// identifies the view.
type SharedView struct{ View }

// Subject is the data that a named resource is made of. Subjects are compared with ==;
// equal ones have equal content.
type Subject interface {
	// Slot returns a comparable key that stays the same through all revisions of the subject.
	// It differs from the key of any other name, and of any other variant of the same name.
	Slot() any
	// Encode returns the subject's content. It is called once per revision, on
	// any goroutine.
	Encode() Encoded
}

// Alias is a [Subject] under one more name. It is sent to clients that ask for the name, and
// is no part of a wildcard.
type Alias interface {
	Subject
	Alias()
}

// Referrer is a [Subject] that refers to others. It is asked while a resource of a type
// that it [TypeSpec].Needs is in flight or NACKed. It is also asked when it is sent, for
// the resources that it [TypeSpec].Brings.
type Referrer interface {
	// Refers yields the names of the resources of another type, given by the
	// type's name, that this one refers to.
	Refers(to string) iter.Seq[string]
}

// Incremental is a [Subject] of a type with [TypeSpec].Increments.
type Incremental interface {
	Subject
	// Revision returns the version of the subject's encoded forms.
	Revision() Version
	// Since returns the subject for a subscriber that holds the revision of a version. The
	// zero version means an unknown one: the subject then replaces any revision.
	Since(held Version) Subject
}

// Unrepeatable is a [Subject] that a client mishandles if two messages bring it with the
// same bytes. It is encoded for each message, and cannot be shared.
type Unrepeatable interface {
	Subject
	// EncodeOnce encodes the same version as Encode, and returns other bytes each time.
	EncodeOnce() Encoded
}

// Update is a step from one world to the next.
type Update struct {
	World   World
	Changed []Changed
	// Remembers means that the world has all that was ever sent here, even by an earlier
	// process, although some source may never have been listed. A full set then does not wait
	// for that source if its subscriber cannot name its version.
	Remembers bool
	// Waited means that each source was listed or was waited for long enough. A full set then
	// does not wait for the missing ones, whichever version its subscriber holds.
	Waited bool
	// Reviewed are the audience keys of clients that may have another view now; "*" means all.
	// Only clients of these keys are compared, so it has to contain all of them.
	Reviewed []string
	// Committed is when the store took the oldest change in the step; zero if unknown.
	Committed time.Time
}

// Changed names a resource that may differ from the previous world. A name too many costs a
// comparison; a missing one loses an update.
type Changed struct {
	Row  Row
	Name string
	// Audience are the audience keys of the clients with views that may contain the resource,
	// now or before; nil means all. Consecutive steps are united. A comparison of views then
	// misses a client whose view changes and changes back, so its keys belong to the changes
	// made in between.
	Audience []string
	// Urgent means that the version that clients hold misroutes them, such as to a removed
	// endpoint. The change reaches them before changes that are not urgent.
	Urgent bool
	// Revoked means that clients that lost the resource may not keep it any longer: its
	// removal waits for nothing.
	Revoked bool
}

// Nothing is the world of types without a producer.
type Nothing struct{}

// View returns the only view.
func (Nothing) View(Row, Client) View { return nil }

// Names yields no name.
func (Nothing) Names(View, Row) iter.Seq[string] { return func(func(string) bool) {} }

// Find finds nothing.
func (Nothing) Find(View, Row, string) (Subject, bool) { return nil, false }

// Complete reports that there is no more to come.
func (Nothing) Complete() bool { return true }

package source

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Source knows one registry.
type Source interface {
	// Run reads the registry into sink until ctx ends or the registry fails.
	// It lists first: one complete [Listing] of every place. Then it follows.
	//
	// Run returns an error when it cannot go on; the supervisor shows the error
	// as the source's status, keeps every record, waits, and calls Run again.
	// What could not be read must never be passed on as if it were absent.
	//
	// Run is called again, too, after ctx has ended because the store was restored.
	Run(ctx context.Context, sink Sink) error
}

// Sink takes what a source reads. Replace and Change return once the change is
// stored, and fail only when it could not be. That a suspicious drop is held
// back is no failure: the source learns that its listing was taken.
type Sink interface {
	// Replace takes a complete reading of some places, or of the whole registry.
	Replace(ctx context.Context, listing Listing) error
	// Change takes what a registry reports object by object.
	Change(ctx context.Context, change Change) error
	// Relist receives when the supervisor wants the whole registry listed once
	// more, changed or not: to see whether a drop that it holds lasts, because a
	// change spoke of a record whose owner is unknown, or because an operator has
	// released what was held. A source that lists the whole registry every few
	// seconds anyway may leave it alone. All others wait for it beside whatever
	// they wait for, and ask for it anew each time:
	//
	//	case <-sink.Relist():
	//		err = sink.Replace(ctx, everything)
	Relist() <-chan time.Time
}

// Object is what a registry changes as one: a record, and the records that
// come and go with it. The supervisor fills in the source's name.
type Object struct {
	Record model.Record
	// Owned records are named "<name of the record>/…" in the same namespace.
	Owned []model.Record
}

// Listing is a complete reading of Places: what is stored under one of them
// and neither listed nor rejected is gone from the registry.
type Listing struct {
	// Places that were read; nil means the whole registry.
	Places []string
	// Removed are those of the places whose end the registry itself reported, one
	// by one, such as a service that it denies by name. What is gone with them is
	// no suspicious drop, however much it is. A place that is merely not there any
	// more, such as a file, and one of many that disappeared together, is not among
	// them.
	Removed  []string
	Objects  []Object
	Rejected []Rejection
	// Ignored counts objects of kinds that are none of Isthmus's business in the
	// whole registry, whatever the places, by kind; nil if it was not counted.
	Ignored map[string]int
	// Notices are about the whole registry, whatever the places; nil if it was not
	// looked for any.
	Notices []Notice
	// Observed is when the source first saw that something had changed.
	Observed time.Time
}

// Notice says that something in the registry has an effect that nobody may expect,
// though nothing is wrong with it.
type Notice struct {
	Object string // for people: "consumer default//shop/web"
	Where  string // for people: whom it concerns, such as "namespace shop, labels app=web"
	Text   string // what the effect is, and what to do if it is not wanted
}

// Change is what a registry reports object by object, or record by record. An
// object replaces the one of its name together with everything that one owned.
type Change struct {
	Upserts []Object
	Deletes []model.Ref // of objects; what they own goes with them
	// OwnedUpserts are single records that are new or different, such as one
	// endpoint of a service. Each names its Owner, and is named as in an [Object].
	// Everything else of the owner stays as it is and costs nothing. The owner is
	// stored already, or comes in the same change; else the record is left out and
	// the source is asked to list. They count after Upserts: one that stands there,
	// too, is as it is here.
	OwnedUpserts []model.Record
	// OwnedDeletes are single records that are gone while their owner stays. One
	// that is upserted as well stays, too, and one that is not stored is gone already.
	OwnedDeletes []model.Ref
	Rejected     []Rejection
	Observed     time.Time
}

// Rejection says that something in the registry could not be taken. The last
// good version of it stays: the record Ref names, or, when the text is too
// broken to tell what it describes, every stored record of Place that was not
// listed beside it, or those in a Namespace. A record that stays stands in Place from then on if the
// place where it stood was read and does not speak of it any more.
type Rejection struct {
	Ref       model.Ref // without source; zero if unknown
	Place     string    // as in [model.Record]
	Namespace string    // without a Ref: the only one of the place that it is about; empty for all
	Object    string    // for people: "ServiceEntry default/reviews"; may be empty
	Where     string    // for people: "shop.yaml:12"
	Field     string    // for people: "spec.ports[0].number"; may be empty
	Reason    string    // what is wrong and how to fix it
	// Outside says that nothing is wrong, but the configuration excludes it: see [Only]
	// and [LocalAddresses]. The supervisor sets it.
	Outside bool
	// Owner is of an endpoint that is rejected by itself, without source. The supervisor
	// sets it.
	Owner model.Ref
}

package source

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Source knows one registry.
type Source interface {
	// Run reads the registry into sink until ctx ends or the registry fails. It lists
	// first: one complete [Listing] of every place. Then it follows.
	//
	// Run returns an error when it cannot go on; the supervisor shows the error as
	// the source's status, keeps every record, waits, and calls Run again. An
	// unreadable object must never be passed on as if it were absent.
	Run(ctx context.Context, sink Sink) error
}

// Sink takes the readings of a source. Replace and Change return once the change is
// stored, and fail only if storing fails. Holding a suspicious drop is no failure:
// the source learns that its listing was applied.
type Sink interface {
	// Replace takes a complete reading of some places, or of the whole registry.
	Replace(ctx context.Context, listing Listing) error
	// Change takes changes that a registry reports object by object.
	Change(ctx context.Context, change Change) error
	// Relist receives when the supervisor wants the whole registry listed once more,
	// changed or not. There are three reasons: a held drop is to be confirmed; a
	// change has a record with an unknown owner; an operator has released held
	// records. A source that lists the whole registry every few seconds anyway may
	// ignore it. All others select on it in every wait, and call Relist anew each
	// time:
	//
	//	case <-sink.Relist():
	//		err = sink.Replace(ctx, everything)
	Relist() <-chan time.Time
}

// RejectionReporter is a source that reports rejections to the registry, where its objects are
// edited.
type RejectionReporter interface {
	// ReportRejections is called after each stored reading that changed the rejections, with
	// all present and the new ones. Stored reports whether a record is stored. The source must
	// not keep the arguments, nor block.
	ReportRejections(present, fresh []Rejection, stored func(model.Ref) bool)
}

// Object is the unit that a registry changes: a record, and the records that come and
// go with it. The supervisor fills in the source's name.
type Object struct {
	Record model.Record
	// Owned records are named "<name of the record>/…" in the same namespace.
	Owned []model.Record
}

// Listing is a complete reading of Places: a stored record of one of them that is
// neither listed nor rejected is gone from the registry.
type Listing struct {
	// Places that were read; nil means the whole registry.
	Places []string
	// Removed are places that the registry itself reported as ended, one by one. An
	// example is a service that it denies by name. Their loss is no suspicious drop,
	// however large it is. A place that is merely missing, such as a file, does not
	// belong here. Nor does one of many places that disappeared together.
	Removed  []string
	Objects  []Object
	Rejected []Rejection
	// Ignored counts objects of kinds that Isthmus does not read, in the whole
	// registry, whatever the places, by kind; nil if they were not counted.
	Ignored map[string]int
	// Notices are about the whole registry, whatever the places; nil if none were
	// looked for.
	Notices []Notice
	// Observed is when the source first saw the change.
	Observed time.Time
}

// Notice reports an unexpected effect of valid data in the registry.
type Notice struct {
	Object string // for people: "consumer default//shop/web"
	Where  string // for people: the affected workloads, such as "namespace shop, labels app=web"
	Text   string // the effect, and how to avoid it
}

// Change has the changes that a registry reports object by object, or record by record.
// An object replaces the stored one of its name together with all records that one owned.
type Change struct {
	Upserts []Object
	Deletes []model.Ref // of objects; owned records go with them
	// OwnedUpserts are single records that are new or different, such as one endpoint
	// of a service. Each names its Owner, and is named as in an [Object]. Other
	// records of the owner stay unchanged and cost nothing. The owner is stored
	// already, or comes in the same change. Else the record is left out and the
	// source is asked to list. OwnedUpserts override equal records in Upserts.
	OwnedUpserts []model.Record
	// OwnedDeletes are single records that are gone while their owner stays. A record
	// that is upserted as well stays. A record that is not stored is ignored.
	OwnedDeletes []model.Ref
	Rejected     []Rejection
	Observed     time.Time
}

// Rejection reports that an object in the registry was not accepted. The last good
// version stays, which is the record that Ref names. If the text is too broken to
// identify an object, all stored records of Place stay that are not listed beside it.
// With a Namespace, only its records stay. A staying record moves to Place if its
// former place was read and does not contain it any more.
type Rejection struct {
	Ref       model.Ref // without source; zero if unknown
	Place     string    // as in [model.Record]
	Namespace string    // without a Ref: the only namespace of the place that is concerned; empty for all
	Object    string    // for people: "ServiceEntry default/reviews"; may be empty
	Where     string    // for people: "shop.yaml:12"
	Field     string    // for people: "spec.ports[0].number"; may be empty
	Reason    string    // the fault and its remedy
	// Outside says that the object is valid, but the configuration excludes it: see
	// [Only] and [LocalAddresses]. The supervisor sets it.
	Outside bool
	// NoEffect says that the object is valid, is listed as well, and has no effect: Isthmus does
	// not do what it asks for.
	NoEffect bool
	// Owner is the owner of an endpoint that is rejected by itself, without source.
	// The supervisor sets it.
	Owner model.Ref
}

package source

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Source knows one registry.
type Source interface {
	// Run reads the registry into sink until ctx ends or the registry fails. It lists
	// first: one complete [model.Listing] of every place. Then it follows.
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
	Replace(ctx context.Context, listing model.Listing) error
	// Change takes changes that a registry reports object by object.
	Change(ctx context.Context, change model.Change) error
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
	ReportRejections(present, fresh []model.Rejection, stored func(model.Ref) bool)
}

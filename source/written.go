package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// ReservedPrefix begins the names of written sources. No configured source can
// have such a name, so records of the two classes never meet under one.
const ReservedPrefix = "isthmus."

// IsReserved reports whether a name is that of a written source.
func IsReserved(name string) bool { return strings.HasPrefix(name, ReservedPrefix) }

// Written is a source that no registry lists: its records are written one by
// one, by people and by clients, through any replica and by any number of
// writers at the same time. So it differs from a listed source in everything
// that hangs on a listing:
//
//   - Each write compares and sets. A conflict says what is stored instead, and
//     the writer reads again and decides anew.
//   - It is always primed: nothing is waited for, as there is no listing to come.
//   - Nothing of it is ever held, for no silence says that something is gone.
//   - It is never forgotten, though no configuration names it.
//   - It comes last in the merge order, as every source that no configuration
//     names: what a registry says of a service goes before it.
//
// It may be used by any number of goroutines.
type Written struct {
	name  string
	store Store
	cfg   WrittenConfig
}

// WrittenConfig says on whose behalf records are written.
type WrittenConfig struct {
	// Lease is that of the replica which stands for what it writes; empty for
	// records that stand by themselves, such as what an operator decided.
	Lease string
}

// NewWritten returns a writer of the source with that name, which must be
// reserved. Any number of them may write to one source.
func NewWritten(name string, store Store, cfg WrittenConfig) (*Written, error) {
	if !IsReserved(name) {
		return nil, fmt.Errorf("source %s: a written source has a name that begins with %q, so that no configured one can have it", name, ReservedPrefix)
	}
	return &Written{name, store, cfg}, nil
}

// How long a mark that somebody else has set is waited for, if the replica lags.
const primeTries = 9

var primeBackoff = wait.Backoff{Min: 5 * time.Millisecond, Max: time.Second}

// Prime lets readers know that the source is complete as it is. Whoever opens
// it primes it, and others may at the same time: a mark that cannot be set
// because there is one appears here as soon as the replica has come so far.
func (w *Written) Prime(ctx context.Context) error {
	mark := model.Record{Ref: markRef(w.name), Spec: model.SourceMark{}}
	for failures := 1; ; failures++ {
		for range w.store.List(model.Filter{Kind: model.KindSource, Source: w.name}) {
			return nil
		}
		_, err := w.store.Commit(ctx, model.Commit{Writes: []model.Write{{Record: mark}}})
		if err == nil {
			return nil
		}
		if failures == primeTries || !wait.Sleep(ctx, primeBackoff.After(failures, 0.5)) {
			return fmt.Errorf("prime source %s: %w", w.name, err)
		}
	}
}

// Write makes all writes of a commit or none, and returns the revision at which
// they can be read. Source and lease of the records are filled in; UID
// and revision are what the writer expects to find, none for a new record. A
// writer that may outlive the store's epoch sets that of the commit. The error
// of a conflict is the store's, and names what there is.
func (w *Written) Write(ctx context.Context, c model.Commit) (revision uint64, err error) {
	filled := make([]model.Write, len(c.Writes))
	for i, write := range c.Writes {
		if filled[i], err = w.fill(write); err != nil {
			return 0, fmt.Errorf("source %s: %s: %w", w.name, describe(write.Record.Ref), err)
		}
	}
	c.Writes = filled
	if revision, err = w.store.Commit(ctx, c); err != nil {
		return 0, fmt.Errorf("source %s: %w", w.name, err)
	}
	return revision, nil
}

var (
	errOtherSource = errors.New("belongs to another source; write it there")
	errReserved    = errors.New("records of this kind are reserved for Isthmus itself")
)

func (w *Written) fill(write model.Write) (model.Write, error) {
	r := &write.Record
	switch {
	case r.Source != "" && r.Source != w.name:
		return write, errOtherSource
	case r.Kind.Reserved():
		return write, errReserved
	case !write.Delete && !r.Kind.Fits(r.Spec):
		return write, fmt.Errorf("its specification is a %T, which this kind cannot have", r.Spec)
	}
	r.Source, r.Lease, r.Status = w.name, w.cfg.Lease, model.Status{}
	return write, nil
}

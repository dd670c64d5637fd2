package sourcetest

import (
	"context"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// removal tries what is done to a source that left the configuration.
func removal(ctx context.Context, d *diary, s Store) {
	if left := source.Leftover(s, nil); slices.Contains(left, written) {
		d.violated("%s counts among the sources that no configuration has any more", written)
	}
	if err := source.Remove(ctx, s, source.SingleProcess{}, written); err == nil {
		d.violated("%s was removed as a source that left the configuration", written)
	}
}

// otherWriter has the writer of another source try.
func otherWriter(ctx context.Context, d *diary, s Store) {
	w, err := source.NewWritten(source.ReservedPrefix+"other", s, source.WrittenConfig{})
	if err != nil {
		d.violated("%v", err)
	}
	for r := range s.List(model.Filter{Source: written}) {
		if _, err := w.Write(ctx, model.Commit{Writes: []model.Write{{Record: r, Delete: true}}}); err == nil {
			d.violated("%s was deleted through another source", r.Name)
		}
	}
}

// listedSource has a source that lists an empty registry run beside, and one that
// denies everything by name.
func listedSource(ctx context.Context, d *diary, s Store) {
	ctx, end := context.WithCancel(ctx)
	empty := run(func(ctx context.Context, sink source.Sink) error {
		if err := sink.Replace(ctx, source.Listing{}); err != nil {
			return err
		}
		var all []model.Ref
		for r := range s.List(model.Filter{Source: written}) {
			all = append(all, r.Ref)
		}
		err := sink.Change(ctx, source.Change{Deletes: all, OwnedDeletes: all})
		end()
		<-ctx.Done()
		return err
	})
	if err := source.NewSupervisor("listed", empty, s, source.Config{}).Run(ctx); err != nil {
		d.violated("%v", err)
	}
}

// late has a writer try that read a record before another wrote it.
func late(ctx context.Context, d *diary, s Store) {
	w, err := source.NewWritten(written, s, source.WrittenConfig{Lease: "alive"})
	if err != nil {
		d.violated("%v", err)
	}
	for before := range s.List(model.Filter{Source: written, Kind: kind}) {
		now := before
		now.Spec = model.Opaque{Content: "newer"}
		if _, err := w.Write(ctx, model.Commit{Writes: []model.Write{{Record: now}}}); err != nil {
			d.violated("%v", err)
		}
		if _, err := w.Write(ctx, model.Commit{Writes: []model.Write{{Record: before, Delete: true}}}); err == nil {
			d.violated("%s was deleted by a writer that had not read what is stored", before.Name)
		}
	}
}

// run is a source that is a function.
type run func(ctx context.Context, sink source.Sink) error

// Run implements [source.Source].
func (r run) Run(ctx context.Context, sink source.Sink) error { return r(ctx, sink) }

package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// confine removes stored records that the source's present confinement excludes,
// before the source is run. The order comes from an operator and not from a registry.
// So it waits for no listing, and no record is held.
func (k *sink) confine(ctx context.Context) (err error) {
	for range commitTries {
		writes, gone := k.outside()
		if len(writes) == 0 {
			return nil
		}
		if _, err = k.store.Commit(ctx, model.Commit{Writes: writes}); err == nil {
			if gone > 0 {
				k.cfg.Log.Info("what the source is not confined to is removed", "source", k.name, "count", gone)
			}
			return nil
		}
	}
	return fmt.Errorf("remove what the source is not confined to: %w", err)
}

// outside returns the writes that confine the stored records, and the number of
// objects and single endpoints that they remove.
func (k *sink) outside() (writes []model.Write, gone int) {
	objects, records := k.localRecords()
	for rec := range k.all() {
		if rec.Owner == (model.Ref{}) && k.cfg.Only.excludes(rec) != "" {
			objects[rec.Ref] = true
		}
	}
	if len(objects)+len(records) == 0 && !k.cfg.Only.Confines() {
		return nil, 0 // the usual case
	}
	for rec := range k.all() {
		if objects[head(rec)] || records[rec.Ref] {
			writes = append(writes, deletion(rec))
			continue
		}
		if spec := k.cfg.Only.confine(rec.Spec); rec.Kind == model.KindWorkload && !spec.EqualSpec(rec.Spec) {
			rec.Spec = spec
			writes = append(writes, model.Write{Record: rec})
		}
	}
	return writes, len(objects) + len(records)
}

// confined returns a baseline without the objects that the source's confinement
// excludes: their absence is no drop.
func (s *Supervisor) confined(b Baseline) Baseline {
	b.Objects = slices.DeleteFunc(slices.Clone(b.Objects), func(o BaselineObject) bool {
		rec := model.Record{Ref: o.subject(s.name)}
		if o.Kind == model.KindService {
			rec.Spec = model.Service{Hosts: model.ListOf(o.Name)}
		}
		return s.cfg.Only.excludes(rec) != ""
	})
	return b
}

package supervise

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// outside returns the writes that confine the stored records and complete their networks, and the
// number of objects and single endpoints that they remove.
func outside(all iter.Seq[model.Record], cfg Config) (writes []model.Write, gone int) {
	objects, records := atLocalAddresses(all, cfg.LocalAddresses)
	for rec := range all {
		if rec.Owner == (model.Ref{}) && cfg.Only.Excludes(rec) != "" {
			objects[rec.Ref] = true
		}
	}
	if len(objects)+len(records) == 0 && !cfg.Only.Confines() && cfg.Network == "" {
		return nil, 0 // the usual case
	}
	for rec := range all {
		if objects[index.Head(rec)] || records[rec.Ref] {
			writes = append(writes, reading.Deletion(rec))
			continue
		}
		if spec := cfg.Network.Complete(cfg.Only.Confine(rec.Spec)); index.IsEndpoint(rec.Kind) && !spec.EqualSpec(rec.Spec) {
			rec.Spec = spec
			writes = append(writes, model.Write{Record: rec})
		}
	}
	return writes, len(objects) + len(records)
}

// atLocalAddresses returns the stored objects, and records of other objects, that may not
// be at local addresses any more.
func atLocalAddresses(all iter.Seq[model.Record], local source.LocalAddresses) (objects, records map[model.Ref]bool) {
	objects, records = map[model.Ref]bool{}, map[model.Ref]bool{}
	if local != source.RejectLocal {
		return objects, records
	}
	owned := map[model.Ref][]model.Record{} // of services with hosts that may be looked up
	for rec := range all {
		if service, ok := rec.Spec.(model.Service); ok && service.Resolution.LooksUp() {
			owned[rec.Ref] = nil
		}
	}
	for rec := range all {
		if list, is := owned[rec.Owner]; is {
			owned[rec.Owner] = append(list, rec)
		}
		if local.ExcludesEndpoint(rec) != "" {
			records[rec.Ref] = true
		}
	}
	for rec := range all {
		if rec.Owner == (model.Ref{}) && local.ExcludesObject(rec, slices.Values(owned[rec.Ref])) != "" {
			objects[rec.Ref] = true
		}
	}
	return objects, records
}

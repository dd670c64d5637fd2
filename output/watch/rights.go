package watch

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// rights are what a reader may see.
type rights struct {
	all       bool   // every record, with revisions
	namespace string // otherwise, of the reader
}

// sees reports whether a reader may see a record.
func (r rights) sees(rec *model.Record) bool {
	if r.all {
		return true
	}
	switch spec := rec.Spec.(type) {
	case model.MergedService:
		return r.seesExported(spec.ExportTo, rec.Namespace)
	case model.MergedEndpoint:
		return r.seesExported(spec.ExportTo, rec.Namespace)
	}
	return false
}

func (r rights) seesExported(to model.List[string], home string) bool {
	d := catalog.Definition{ExportTo: to}
	return d.VisibleTo(r.namespace, home)
}

// event returns an event of a commit as a reader may see it; nil if it may not. A record that
// becomes visible is new to the reader, and one that ceases to be is deleted.
func (r rights) event(e model.Event) model.Event {
	if r.all {
		return e
	}
	switch e := e.(type) {
	case model.Upsert:
		switch {
		case r.sees(&e.Record):
			return e
		case e.Before != nil && r.sees(e.Before):
			return model.Delete{Record: *e.Before}
		}
		return nil
	case model.Delete:
		if !r.sees(&e.Record) {
			return nil
		}
		return e
	default:
		return e
	}
}

func isMerged(kind model.Kind) bool {
	return kind == model.KindMergedService || kind == model.KindMergedEndpoint
}

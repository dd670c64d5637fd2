package store

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// changesOf returns what a fed commit changes in what is stored, or says which
// of its records cannot be part of it.
func changesOf(stored records, d Decided) ([]change, error) {
	if len(d.Events) == 0 {
		return nil, &InvalidError{Problem: fmt.Sprintf("revision %d has no events; a commit that changes nothing has no revision", d.At.Revision)}
	}
	changes := make([]change, len(d.Events))
	seen := make(map[model.Ref]struct{}, len(d.Events))
	for i, event := range d.Events {
		ref, err := changes[i].fill(stored, event, d.At.Revision)
		if err != nil {
			return nil, err
		}
		if _, twice := seen[ref]; twice {
			return nil, &InvalidError{ref, fmt.Sprintf("is twice in the commit of revision %d", d.At.Revision)}
		}
		seen[ref] = struct{}{}
	}
	return changes, nil
}

// fill makes c what an event says. What a delete leaves behind is what the
// replica has, whatever the feed knows of it.
func (c *change) fill(stored records, event model.Event, revision uint64) (model.Ref, error) {
	switch e := event.(type) {
	case model.Upsert:
		r := e.Record
		c.before, _ = stored.Get(r.Ref)
		c.after = &r
		return r.Ref, problemOfFed(&r, c.before, revision)
	case model.Delete:
		ref := e.Record.Ref
		var ok bool
		if c.before, ok = stored.Get(ref); !ok {
			return ref, &InvalidError{ref, fmt.Sprintf("is deleted by revision %d, and is not stored: commits before it are missing", revision)}
		}
		return ref, nil
	default:
		return model.Ref{}, &InvalidError{Problem: fmt.Sprintf("revision %d has a %T; a commit is upserts and deletes", revision, event)}
	}
}

func problemOfFed(r, before *model.Record, revision uint64) error {
	problem := problemOfSaved(r, revision)
	switch {
	case problem != "":
	case r.Revision != revision:
		problem = fmt.Sprintf("has revision %d in the commit of %d", r.Revision, revision)
	case before != nil && before.UID == r.UID && before.Generation >= r.Generation:
		problem = fmt.Sprintf("has generation %d in revision %d, and generation %d is stored", r.Generation, revision, before.Generation)
	}
	if problem == "" {
		return nil
	}
	return &InvalidError{r.Ref, problem}
}

// collect returns records that were stored at a revision, or says which of
// them cannot have been.
func collect(revision uint64, all iter.Seq[model.Record]) (records, error) {
	editor := noRecords().Edit()
	for r := range all {
		if problem := problemOfSaved(&r, revision); problem != "" {
			return records{}, &InvalidError{r.Ref, problem}
		}
		if _, twice := editor.View().Get(r.Ref); twice {
			return records{}, &InvalidError{r.Ref, "saved twice"}
		}
		editor.Set(r.Ref, &r)
	}
	return editor.Map(), nil
}

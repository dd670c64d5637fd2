package sourcetest

import (
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// judge folds the batches of a watch into what each record went through, and compares
// that with the answers that the writers got.
func (h *writers) judge(s Store) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unprimed != nil {
		h.violated("%v", h.unprimed)
	}
	now := map[string]model.Record{}
	applied := map[string]map[uint64]bool{} // revisions by word
	enter := func(word string, revision uint64) {
		if applied[word] == nil {
			applied[word] = map[uint64]bool{}
		}
		applied[word][revision] = true
	}
	gone := map[uint64]bool{} // revisions at which something was deleted
	for _, b := range h.batches {
		for _, event := range b.Events {
			switch e := event.(type) {
			case model.Upsert:
				if e.Record.Kind == kind {
					h.compare(now[e.Record.Name], e.Record, enter)
					now[e.Record.Name] = e.Record
				}
			case model.Delete:
				gone[e.Revision] = true
				delete(now, e.Record.Name)
			}
		}
	}
	h.judgeOutcomes(applied, gone)
	for r := range s.List(model.Filter{Source: written, Kind: kind}) {
		if r.Revision != now[r.Name].Revision {
			h.violated("%s is stored at revision %d, and the watch had it at %d", r.Name, r.Revision, now[r.Name].Revision)
		}
		delete(now, r.Name)
	}
	if len(now) > 0 {
		h.violated("%d records came with the watch that are not stored", len(now))
	}
}

// compare holds that a revision of a record is the one before and one write more.
func (h *writers) compare(before, after model.Record, enter func(string, uint64)) {
	had, has := words(before), words(after)
	if len(has) != len(had)+1 || !slices.Equal(had, has[:len(had)]) {
		h.violated("revision %d: %s says %q after %q: a write is lost", after.Revision, after.Name, has, had)
	}
	if before.UID != after.UID && len(had) > 0 {
		h.violated("revision %d: %s is another record, and still says %q", after.Revision, after.Name, had)
	}
	enter(has[len(has)-1], after.Revision)
}

func words(r model.Record) []string {
	spec, _ := r.Spec.(model.Opaque)
	return strings.Fields(spec.Content)
}

// judgeOutcomes holds that each write has taken effect as its writer was answered:
// at that revision, or never, or once at most if there was no answer.
func (h *writers) judgeOutcomes(applied map[string]map[uint64]bool, gone map[uint64]bool) {
	for word, o := range h.outcomes {
		at := applied[word]
		switch {
		case strings.HasPrefix(word, "-"):
			if o.state == done && !gone[o.revision] {
				h.violated("the delete %s was acknowledged for revision %d, at which nothing was deleted", word, o.revision)
			}
			if len(at) > 0 {
				h.violated("the delete %s wrote something", word)
			}
		case len(at) > 1:
			h.violated("%s took effect at %d revisions", word, len(at))
		case o.state == done && !at[o.revision]:
			h.violated("%s was acknowledged for revision %d, and took effect at %v: it is lost", word, o.revision, at)
		case o.state == conflict && len(at) > 0:
			h.violated("%s was a conflict, and took effect at %v", word, at)
		}
		delete(applied, word)
	}
	if len(applied) > 0 {
		h.violated("%v took effect, and nobody wrote that", applied)
	}
}

package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Release deletes the held records by order of an operator, in one commit. It returns
// their number, including endpoints that baselines keep. The source is asked to list
// after that, for held records may be back without a report. It may be called from
// anywhere, whether the source runs or not.
func (s *Supervisor) Release(ctx context.Context) (released int, err error) {
	if d := s.departure.Load(); d != nil && d.Release != nil {
		return d.Release(ctx)
	}
	done, err := s.write(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	kept, _ := s.kept()
	baselines := releasedOf(s.baselines)
	for range commitTries {
		s.reindex()
		writes := s.heldWrites()
		if released = max(released, len(writes)); released+kept > 0 {
			s.releasing()
		}
		for rec := range s.store.List(model.Filter{Kind: model.KindHold, Source: s.name}) {
			writes = append(writes, deletion(rec))
		}
		writes = append(writes, s.markWrites(baselines, false)...)
		if len(writes) > 0 {
			if _, err = s.store.Commit(ctx, model.Commit{Writes: writes}); err != nil {
				continue
			}
		}
		s.decided(plan{}, baselines)
		if released > 0 {
			s.unmarked()
		}
		s.reindex()
		s.released()
		s.asked(false)
		if released > 0 {
			s.cfg.Log.Info("what was held is released", "source", s.name, "count", released)
		}
		return released + kept, nil
	}
	s.asked(false)
	return 0, fmt.Errorf("release what is held of source %s: %w", s.name, err)
}

// heldWrites returns the deletions of held records, except of objects with a record that
// is not held: that record was reported since, and stays until a listing lacks it.
func (s *Supervisor) heldWrites() (writes []model.Write) {
	if s.holds.empty() {
		return nil
	}
	var objects []model.Record
	reported := map[model.Ref]bool{}
	for rec := range s.all() {
		is := partOf(rec)
		switch held := s.holds.has(is); {
		case !held && s.holds.objects[is.object] != nil:
			reported[is.object] = true
		case held && is.ref == is.object:
			objects = append(objects, rec)
		case held:
			writes = append(writes, deletion(rec))
		}
	}
	for _, rec := range objects {
		if !reported[rec.Ref] {
			writes = append(writes, deletion(rec))
		}
	}
	return writes
}

// text describes the held records, the next steps, and the options of an operator.
func (h *holds) text(source string, total int, cfg Hold) string {
	objects, due := map[model.Ref]bool{}, clock{}
	for _, one := range h.by {
		for ref := range one.objects {
			objects[ref] = true
		}
		if one.listings > 0 && (due.listings == 0 || one.first.Before(due.first)) {
			due = one.clock
		}
	}
	what := fmt.Sprintf("%d of %d endpoints", h.stock.endpoints, h.judged(total))
	if h.stock.endpoints == 0 {
		what = fmt.Sprintf("%d records", h.stock.stored)
	}
	text := fmt.Sprintf("%s disappeared within %s, of %s; each is kept until %d listings in a row that span %s lack it", what, cfg.For, some(objects), confirmations, cfg.For)
	if due.listings > 0 {
		text += fmt.Sprintf(" (%d so far, the first is due at %s)", due.listings, due.first.Add(cfg.For).UTC().Format(time.RFC3339))
	}
	return text + "; if they are really gone, run: isthmus sources release " + source
}

// judged returns the number of judged endpoints: of the source, if a record is held
// for it as a whole, else of the services with a loss.
func (h *holds) judged(total int) (n int) {
	had := map[model.Ref]int{}
	for key, one := range h.by {
		if key.cause == (model.Ref{}) {
			return total
		}
		had[key.cause] = max(had[key.cause], one.had, one.stock.endpoints)
	}
	for _, most := range had {
		n += most
	}
	return n
}

// some names a few objects, services first, and counts the others.
func some(objects map[model.Ref]bool) string {
	const few = 3
	refs := slices.SortedFunc(maps.Keys(objects), func(a, b model.Ref) int {
		return cmp.Or(rank(a.Kind)-rank(b.Kind), a.Compare(b))
	})
	var names []string
	for _, ref := range refs[:min(few, len(refs))] {
		names = append(names, describe(ref))
	}
	if more := len(refs) - few; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func rank(kind model.Kind) int {
	if kind == model.KindService {
		return 0
	}
	return 1
}

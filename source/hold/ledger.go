package hold

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Ledger is the data of one source for the judgement of its drops.
type Ledger struct {
	Config
	// Edited says that people edit the registry, such as files. The replacement of all
	// its endpoints in one listing is no drop then.
	Edited bool
	Known
	marks *marks
}

// NewLedger returns the ledger of a source without records.
func NewLedger(cfg Config, edited bool) *Ledger {
	return &Ledger{Config: cfg, Edited: edited, Known: Known{index.New(), NewHolds()}, marks: newMarks()}
}

// Listing is a completed listing, and the other inputs of its judgement.
type Listing struct {
	Reading    *reading.Reading
	Difference reading.Difference
	First      bool                   // of the process
	Suspected  int                    // endpoints that other systems hold
	Stored     iter.Seq[model.Record] // the stored records of the source, before this listing
	Revision   uint64                 // of the store
	Now        time.Time
}

// Judge decides about the records that a listing lacks. Workloads count for the services
// that selected them before the listing, also for the number that comes back: a changed
// selector is no loss and no gain. It counts from the next listing on. What the listing has under
// another name is not lacking, and its former record is deleted, held or not.
func (l *Ledger) Judge(in Listing) Decision {
	l.begin(in.First, in.Now)
	renamed, rest := explain(l.Known, in.Reading, in.Difference)
	in.Difference = rest
	var t turnover
	var f Fall
	var s Suspicion
	if slices.ContainsFunc(in.Difference.Missing, func(rec model.Record) bool { return !l.Held(rec) }) {
		t = turnoverOf(l.Known, l.marks, in.Reading, in.Difference, renamed)
		f = fallOf(l.Known, l.marks, t, in.Suspected, l.Edited)
		s = l.Suspects(f)
	}
	cause := Nothing
	if s.Is() {
		cause = func(rec model.Record) (model.Ref, bool) {
			if s.whole {
				return model.Ref{}, true
			}
			return s.Cause(rec, l.Index.ServicesOf(rec))
		}
	}
	p := l.Holds.Decide(in.Reading.Records, in.Difference, cause, l.Config, true, in.Now)
	l.Holds.rename(renamed.explained, &p)
	maps.Copy(p.Terms, s.terms(l.Config))
	p.losses = losses{falls: fallsOf(l.Known, t, in.Now), departures: l.departures(p.deleted, in), ends: endsOf(l.Known, in.Difference, p)}
	moved := renamed.count(l.Known, in.Reading.Records, p.ends)
	if s.Is() && len(l.marks.gone) > 0 {
		newRecaller(l.Known, l.marks, in, &p).recall(in.Now.Add(-l.For), s.Cause, func(service model.Ref) int {
			_, held := l.number(service)
			held += t.missing[service] - p.ends.held(service)
			return l.marks.lacks(service, f.Services[service].Now-moved[service], held, p.ends[service])
		})
	}
	return p
}

// Report decides about a change, which lacks no record. So nothing is judged.
func (l *Ledger) Report(listed []model.Record, d reading.Difference) Decision {
	p := l.Holds.Report(listed, d)
	p.ends = endsOf(l.Known, d, p)
	return p
}

// Held reports whether a record is held.
func (l *Ledger) Held(rec model.Record) bool {
	return !l.Holds.Empty() && l.Holds.Has(index.PartOf(rec))
}

// begin updates the marks before a listing is judged. The first listing of a process is
// compared with all restored records, the held endpoints included.
func (l *Ledger) begin(first bool, now time.Time) {
	l.Index.Settle()
	if first {
		for object := range l.Holds.objects {
			for _, service := range l.numbered(object) {
				if listed, held := l.number(service); held > 0 {
					l.marks.fell(service, mark{until: now, endpoints: listed + held, all: true})
				}
			}
		}
	}
	l.marks.expire(now.Add(-l.For), l.number)
}

// departures returns the records that are deleted because a listing lacks them, if
// they may come back.
func (l *Ledger) departures(deleted []model.Record, in Listing) (list []departed) {
	for _, rec := range deleted {
		if index.IsEndpoint(rec.Kind) || rec.Kind == model.KindService {
			object, _ := l.Index.Find(index.Head(rec))
			list = append(list, departed{rec, object.Place, l.Index.ServicesOf(rec), in.Now, in.Revision})
		}
	}
	return list
}

// Apply applies a decision that is about to be committed. It returns the records that
// are held no more, for [Ledger.Undo].
func (l *Ledger) Apply(p Decision, now time.Time) (dropped map[index.Part]Held) {
	l.Index.Commit(p.Writes)
	dropped = l.Holds.Apply(p, now)
	for is := range dropped {
		l.Index.Hold(is.Ref, false)
	}
	for _, c := range p.Held {
		l.Index.Hold(c.Ref, true)
	}
	return dropped
}

// Reported records that the decision about a change is stored.
func (l *Ledger) Reported(r *reading.Reading, p Decision) {
	l.marks.lower(p.ends)
	l.marks.named(r)
}

// Committed records that the decision about a listing is stored.
func (l *Ledger) Committed(r *reading.Reading, p Decision, now time.Time) {
	l.marks.named(r)
	l.marks.note(p.falls, p.departures)
	l.marks.lower(p.ends)
	l.Holds.Tick(p.Lacked, now)
	for _, c := range p.Held {
		l.marks.returned(c.Part)
	}
	l.Index.Settle()
	oldest := now.Add(-l.For)
	l.marks.expire(oldest, l.number)
	l.marks.keep(oldest, func(service model.Ref) int {
		listed, held := l.number(service)
		return l.marks.lacks(service, listed, held, nil)
	})
}

// Undo reverts an applied decision by reading the stored records again: the store failed
// to commit it, or may have. The clocks of records that were to be dropped stay.
func (l *Ledger) Undo(p Decision, dropped map[index.Part]Held, stored iter.Seq[model.Record]) {
	is := map[model.Ref]bool{}
	l.Restore(func(yield func(model.Record) bool) {
		for rec := range stored {
			if is[rec.Ref] = true; !yield(rec) {
				return
			}
		}
	})
	departures := slices.DeleteFunc(p.departures, func(d departed) bool { return is[d.record.Ref] })
	l.marks.note(p.falls, departures)
	if !slices.ContainsFunc(p.Writes, func(w model.Write) bool { return w.Delete && is[w.Record.Ref] }) && !slices.ContainsFunc(p.back, l.Holds.Has) {
		l.marks.lower(p.ends) // it is stored all the same
	}
	for part, was := range dropped {
		l.Holds.wind(part, was)
	}
}

// Restore reads the stored records of the source. It returns writes that remove the marks
// of an older Isthmus on held records. These records are held for the source as a whole,
// since their cause is unknown.
func (l *Ledger) Restore(stored iter.Seq[model.Record]) (unmark []model.Write) {
	var holds []model.Record
	var parts []index.Part
	x := index.New()
	for rec := range x.Following(stored) {
		switch {
		case rec.Kind == model.KindHold:
			holds = append(holds, rec)
		case !rec.Kind.Reserved():
			parts = append(parts, index.PartOf(rec))
		}
		if rec.Status.LegacyHeld != "" {
			unmark = append(unmark, model.Write{Record: rec})
		}
	}
	if len(holds) == 0 {
		parts = nil
	}
	l.Index, l.Holds = x, l.Holds.restore(holds, parts)
	l.Holds.adopt(unmark)
	l.Flag()
	return unmark
}

// Relist empties the index, and yields the stored records of the source while it indexes
// them. [Ledger.Flag] comes afterwards.
func (l *Ledger) Relist(stored iter.Seq[model.Record]) iter.Seq[model.Record] {
	l.Index = index.New()
	return l.Index.Following(stored)
}

// Flag marks the held workloads in the index.
func (l *Ledger) Flag() {
	for object := range l.Holds.objects {
		l.Index.Hold(object, true)
	}
}

// Inherit takes over the marks of an earlier supervisor's ledger of the source.
func (l *Ledger) Inherit(before *Ledger) { l.marks = before.marks }

// Forget drops the marks, by order of an operator.
func (l *Ledger) Forget() { l.marks = newMarks() }

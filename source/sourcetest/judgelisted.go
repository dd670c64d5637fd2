package sourcetest

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// checkWrites checks that no write leaves its record unchanged.
func (g *guard) checkWrites(s change) {
	for _, w := range s.writes {
		have, stored := s.before[w.Record.Ref]
		if w.Delete && !stored || !w.Delete && stored && have.SameContent(w.Record) {
			g.finds("%s is written, and that changes nothing", w.Record.Ref)
		}
	}
}

// checkPrimed checks that no record is stored before the whole registry is listed.
func (g *guard) checkPrimed(s change) {
	if marked(s.before) {
		return
	}
	if !marked(s.after) {
		g.finds("%d records are stored before the source has listed completely", len(s.after))
		return
	}
	if !g.now.whole {
		g.finds("the source is primed by something else than a complete listing")
	}
	got := servedIn(s.after)
	for _, host := range mirrored {
		if !g.wasLike(got, host) {
			g.finds("the first listing stores %v of %s, which the registry never had", got[host], host)
		}
	}
}

// wasLike reports whether the served endpoints of a host match a version of the
// registry since the run began, inclusive. A registry in parts may be read while it
// changes. Besides, a source may keep data that an earlier run of the process could
// not pass on, until it notices a change.
func (g *guard) wasLike(got served, host string) bool {
	since := g.ran.Add(-g.lag)
	if g.began.After(since) {
		since = g.began
	}
	return slices.ContainsFunc(g.versions, func(v version) bool {
		service, there := v.services[host]
		_, is := got[host]
		switch {
		case !v.until.IsZero() && v.until.Before(since):
			return false
		case !there || service.Bad || host == g.bad:
			return !is
		default:
			return got.difference(host, service) == ""
		}
	})
}

func marked(records map[model.Ref]model.Record) bool {
	for ref := range records {
		if ref.Kind == model.KindSource {
			return true
		}
	}
	return false
}

// checkOwners checks that no record is stored without its owner.
func (g *guard) checkOwners(s change) {
	for ref, rec := range s.after {
		owner, stored := s.after[rec.Owner]
		switch {
		case ref.Kind != model.KindEndpoint:
		case !stored:
			g.finds("%s is stored, and its owner %s is not", ref, rec.Owner)
		case !strings.HasPrefix(ref.Name, owner.Name+"/"):
			g.finds("%s is not named as one of %s", ref, owner.Ref)
		}
	}
}

// checkPoisoned checks that no part of an object with an invalid part is stored. A
// record that comes back held was lost before.
func (g *guard) checkPoisoned(s change) {
	for _, w := range s.writes {
		if w.Delete || g.now.poisoned == "" || s.released || hostOf(w.Record, s.after) != g.now.poisoned {
			continue
		}
		if _, held := s.is.Of(w.Record.Ref, w.Record.Owner); held {
			continue
		}
		if have, stored := s.before[w.Record.Ref]; !stored || !have.Spec.EqualSpec(w.Record.Spec) {
			g.finds("%s is taken, though its object has a part that it cannot have", w.Record.Ref)
		}
	}
}

// checkTruth checks that no record is deleted that the registry had all the while. An
// operator releases only held records.
func (g *guard) checkTruth(s change) {
	for _, rec := range s.deleted {
		if _, held := s.was.Of(rec.Ref, rec.Owner); s.released {
			if !held {
				g.finds("%s is released, and was not held", rec.Ref)
			}
			continue
		}
		since := time.Now().Add(-g.slack)
		if reported := g.created[rec.Ref].Add(-g.lag); reported.After(since) {
			since = reported
		}
		if !g.lackedSince(since, hostOf(rec, s.before), rec) {
			g.finds("%s is deleted, and the registry has had it since %s ago", rec.Ref, time.Since(since))
		}
	}
}

// lackedSince reports whether the registry lacked a record at some time since then.
func (g *guard) lackedSince(since time.Time, host string, rec model.Record) bool {
	return slices.ContainsFunc(g.versions, func(v version) bool {
		if !v.until.IsZero() && v.until.Before(since) {
			return false
		}
		service, has := v.services[host]
		if !has || service.Bad || rec.Kind != model.KindEndpoint {
			return !has
		}
		for e := range socketsOf(rec) {
			if slices.Contains(service.Endpoints, e) {
				return false
			}
		}
		return true
	})
}

// checkDrop checks that a suspicious drop is held, and for long enough.
func (g *guard) checkDrop(s change) {
	if s.released || g.now.listing == nil {
		return
	}
	d := drop{change: s, hold: g.hold, marks: g.marks()}
	for _, rec := range s.deleted {
		if !slices.Contains(g.now.listing.Removed, placeOf(rec, s.before)) {
			d.missing = append(d.missing, rec)
		}
	}
	d.count()
	for _, rec := range d.missing {
		if was, held := s.was.Of(rec.Ref, rec.Owner); held {
			g.checkConfirmed(rec, was)
		} else if why := d.suspicious(rec); why != "" {
			g.finds("%s is deleted, and should be held: %s", rec.Ref, why)
		}
	}
}

func placeOf(rec model.Record, records map[model.Ref]model.Record) string {
	if rec.Owner != (model.Ref{}) {
		rec = records[rec.Owner]
	}
	return rec.Place
}

// checkConfirmed checks that a held record is deleted only after enough listings have
// confirmed the drop.
func (g *guard) checkConfirmed(rec model.Record, was model.Hold) {
	since := was.Since
	if g.began.After(since) {
		since = g.began
	}
	listings := 1 // the listing of this commit
	for _, at := range g.listings {
		if !at.Before(since.Add(-g.tolerance)) {
			listings++
		}
	}
	if age := time.Since(since) + g.tolerance; age < g.hold.For || listings < 3 {
		g.finds("%s was held, and is deleted after %s and %d listings", rec.Ref, age, listings)
	}
}

// marks returns the most endpoints that each host had lately.
func (g *guard) marks() map[string]int {
	since, marks := time.Now().Add(-g.hold.For-g.slack), map[string]int{}
	for _, v := range g.versions {
		if v.until.IsZero() || v.until.After(since) {
			for host, service := range v.services {
				marks[host] = max(marks[host], len(service.Endpoints))
			}
		}
	}
	return marks
}

// drop is the missing part of a listing, by the plainest count: of everything listed
// until then. An earlier recent loss makes it no less suspicious, unless the lost
// endpoints are back: then they count, too.
type drop struct {
	change
	hold     hold.Config
	marks    map[string]int    // by host
	missing  []model.Record    // missing and deleted
	had      map[model.Ref]int // endpoints listed before or held until now, by owner, except those reported as deleted
	has      map[model.Ref]int // endpoints listed now, by owner
	lost     int
	total    int
	most     int // total with the endpoints that are back
	survives struct{ records, endpoints, old int }
}

func (d *drop) count() {
	d.had, d.has = map[model.Ref]int{}, map[model.Ref]int{}
	for ref, rec := range d.before {
		_, stays := d.after[ref]
		_, was := d.was.Of(ref, rec.Owner)
		_, held := d.is.Of(ref, rec.Owner)
		if ref.Kind.Reserved() {
			continue
		}
		if stays && !held {
			d.survives.records++
		}
		if ref.Kind != model.KindEndpoint {
			continue
		}
		if stays && !held {
			d.survives.old++
		}
		if back := was && stays && !held; back || !was && (stays || d.isMissing(ref)) {
			d.had[rec.Owner]++
			d.total++
		}
	}
	for ref, rec := range d.after {
		if _, held := d.is.Of(ref, rec.Owner); !held && ref.Kind == model.KindEndpoint {
			d.has[rec.Owner]++
			d.survives.endpoints++
		}
	}
	for owner, n := range d.had {
		d.lost += max(0, n-d.has[owner])
	}
	d.most = d.total
	for owner, n := range d.has { // endpoints that are back
		if d.has[owner] > d.had[owner] {
			d.most += max(0, min(n, d.marks[hostOf(d.after[owner], d.after)])-d.had[owner])
		}
	}
}

func (d *drop) isMissing(ref model.Ref) bool {
	return slices.ContainsFunc(d.missing, func(rec model.Record) bool { return rec.Ref == ref })
}

// suspicious returns why a record must not be deleted yet; empty if it may.
func (d *drop) suspicious(rec model.Record) string {
	owner := rec.Owner
	if rec.Kind == model.KindService {
		owner = rec.Ref
	}
	switch {
	case d.lost > 0 && d.lost >= d.hold.Min && float64(d.lost) >= d.hold.Share*float64(d.most):
		return "most endpoints are missing"
	case d.survives.records == 0:
		return "everything is missing"
	case d.total > 0 && rec.Kind == model.KindEndpoint && d.survives.endpoints == 0:
		return "all endpoints are missing"
	case d.total > d.hold.Min && d.survives.old == 0:
		return "all endpoints are others"
	case d.had[owner] > d.hold.Min && d.has[owner] == 0:
		return "all endpoints of its service are missing"
	}
	return ""
}

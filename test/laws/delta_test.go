package laws_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// deltas are the ways in which a registry says that a single endpoint changed:
// by itself, beside a record that is wrong, in the change that brings its
// service, of a service that it has not spoken of or no longer has, or as
// any other change.
var deltas = []string{"alone", "alone", "alone", "beside", "together", "unknown", "unknown", "dropped", "listed", "silent"}

// endpoint changes one endpoint of a service. What a registry says of one whose
// service it does not have itself is contradicted by its next listing.
func (p *play) endpoint(s step) {
	r := p.registries[s.Registry]
	var change model.Change
	r.become(func() {
		o := r.serviceFor(s, p.gone[s.Registry])
		before := slices.Clone(o.Owned)
		if isEcho(o) {
			s.Report = "listed"
		}
		rec := model.Record{Path: o.Record.Path, Spec: s.Endpoint}
		rec.Ref = model.Ref{Kind: model.KindEndpoint, Key: o.Record.Key}
		rec.Name += fmt.Sprint("/", 1+s.Which%4)
		o.Owned = slices.DeleteFunc(before, func(was model.Record) bool { return was.Ref == rec.Ref })
		if s.Report == "together" {
			change.Upserts = []model.Object{placed(o)}
		}
		if s.Which >= 7 {
			change.OwnedDeletes = []model.Ref{rec.Ref}
		} else {
			o.Owned = append(slices.Clone(o.Owned), rec)
			rec.Owner = o.Record.Ref
			change.OwnedUpserts = []model.Record{rec}
		}
		if s.Report == "beside" {
			bad := model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{Name: "stray"}}, Owner: o.Record.Ref, Spec: s.Endpoint}
			change.OwnedUpserts = append(change.OwnedUpserts, bad)
		}
		if s.Report == "together" {
			delete(r.faults, o.Record.Ref)
		}
		if _, gone := r.objects[o.Record.Ref]; gone || s.Report != "dropped" {
			r.objects[o.Record.Ref] = o
		}
	})
	switch s.Report {
	case "silent":
	case "listed":
		r.become(func() {}, notice{})
	default:
		r.become(func() {}, notice{&change})
	}
}

// serviceFor is the service whose endpoint changes.
func (r *registry) serviceFor(s step, gone map[model.Ref]model.Object) model.Object {
	among := r.objects
	if s.Report == "dropped" {
		among = gone
	}
	refs := slices.DeleteFunc(slices.SortedFunc(maps.Keys(among), model.Ref.Compare), func(ref model.Ref) bool { return ref.Kind != model.KindService })
	if s.Report == "unknown" || len(refs) == 0 {
		return s.Objects[0]
	}
	return among[refs[s.Which%len(refs)]]
}

// plainlyOwned is what a change says of single records.
func (s *said) plainlyOwned(c model.Change) {
	for _, rec := range c.OwnedUpserts {
		if rec.Name != "stray" {
			s.owned = append(s.owned, rec)
		}
	}
	s.ownedGone = c.OwnedDeletes
}

// takeOwned takes what is said of single records. They change if their service
// is there, be it held or not its source's newest word, which it stays; else the
// source has to be listed.
func (m *mirror) takeOwned(s said, present map[model.Ref]bool) (gone []model.Ref) {
	for _, rec := range s.owned {
		owner := rec.Owner
		o, stored := m.objects[owner]
		if !stored {
			if !m.rejected[owner] && m.asked.IsZero() {
				m.asked = time.Now()
			}
			continue
		}
		o.owned = maps.Clone(o.owned)
		rec.Owner = model.Ref{}
		o.owned[rec.Ref], present[rec.Ref] = rec, true
		m.objects[owner] = o
	}
	for _, ref := range s.ownedGone {
		owner := model.Ref{Kind: model.KindService, Key: ref.Key}
		owner.Name, _, _ = strings.Cut(ref.Name, "/")
		if _, stored := m.objects[owner].owned[ref]; stored {
			gone = append(gone, ref)
		}
	}
	return gone
}

// reject notes what stands rejected, of which no listing says more.
func (m *mirror) reject(s said) {
	if s.whole {
		m.rejected, m.asked = map[model.Ref]bool{}, time.Time{}
	}
	for _, o := range s.objects {
		delete(m.rejected, o.Record.Ref)
	}
	for _, ref := range s.deleted {
		delete(m.rejected, ref)
	}
	maps.Copy(m.rejected, s.rejected)
}

// lookAtAsked makes sure that a source which spoke of a record of an unknown
// service has been listed since, if its registry could be read for long enough.
func (p *play) lookAtAsked() {
	for _, m := range p.present {
		asked, since := p.mirrors[m.Name].asked, p.registries[m.Registry].since
		if asked.IsZero() || m.halted || p.registries[m.Registry].mode != up || time.Since(since) < lawBackoff+time.Second {
			continue
		}
		if time.Since(asked) > 3*time.Second {
			p.Fatalf("source %s spoke of an endpoint of an unknown service at %s and has not been listed since", m.Name, asked)
		}
	}
}

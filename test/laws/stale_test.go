package laws_test

import (
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// staleMarks has since when sources are stale, as their marks say. Their endpoints have the health that other sources say.
func (p *play) staleMarks() map[string]time.Time {
	marks := map[string]time.Time{}
	for r := range p.stored.List(model.Filter{Kind: model.KindSource}) {
		if mark, _ := r.Spec.(model.SourceMark); !mark.StaleSince.IsZero() {
			marks[r.Source] = mark.StaleSince
		}
	}
	return marks
}

// followMarks notes that a source has been marked as stale, or is it no more.
func (p *play) followMarks() {
	if now := p.staleMarks(); !maps.Equal(now, p.marks) {
		p.marks = now
		p.noteState()
	}
}

// lookAtMarks makes sure that a source is marked if it has been stale for the time of its hold, and only then: one that
// was marked when the process began may be so earlier.
func (p *play) lookAtMarks() {
	for _, s := range p.process.Inside().Sources() {
		is := s.Status()
		at := slices.IndexFunc(p.present, func(m *seat) bool { return m.Name == is.Name })
		if at < 0 || p.present[at].leaving {
			continue // its status says another thing
		}
		m := p.present[at]
		since, marked := p.marks[is.Name]
		late := is.State == source.StateStale && time.Since(is.Since) > m.Hold.For+lawSlack
		switch {
		case late && !marked:
			p.Fatalf("%s has been stale since %s, and is not marked", is.Name, is.Since)
		case marked && is.State != source.StateStale:
			p.Fatalf("%s is %s, and its mark has it stale since %s", is.Name, is.State, since)
		case marked && time.Since(since) < m.Hold.For && is.Since.Equal(since):
			p.Fatalf("%s is marked %s after it became stale; it has %s", is.Name, time.Since(since), m.Hold.For)
		}
	}
}

package laws_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// going is how far a seat has come whose source leaves the configuration.
type going struct {
	waits []string  // sources that have to be listed before it may leave
	since time.Time // when those were first found to lack too much of it; zero if they were not
	may   bool      // at some moment since all was at rest it could have left
	must  bool      // as things are now it has to leave
}

// lawSlack is how much later than a plain model a decision may be that waits for others.
const lawSlack = 2 * time.Second

// consider judges who may leave, whenever something else is said.
func (p *play) consider() {
	for _, m := range p.present {
		g := &m.going
		if !m.leaving || slices.ContainsFunc(g.waits, p.awaited) {
			continue
		}
		missed := len(g.waits) > 0 && p.missed(m)
		if missed && g.since.IsZero() {
			g.since = time.Now()
		}
		over := time.Since(g.since) - m.Hold.For
		g.must = !missed || over >= lawSlack
		g.may = g.may || g.must || over >= 0
	}
}

// awaited reports whether a source has not been listed since the process began.
func (p *play) awaited(name string) bool { return !p.primed(name) || !p.mirrors[name].renewed }

// missed reports whether the sources that came as another left lack too much of it.
func (p *play) missed(m *seat) bool {
	had, have := stockOf(p.mirrors[m.Name]), stock{}
	for _, name := range m.waits {
		for object, at := range stockOf(p.mirrors[name]) {
			have.add(object, at...)
		}
	}
	lost, total, alone, services, others := 0, 0, false, 0, 0
	keptServices, keptOthers := 0, 0
	for object, at := range had {
		gone := max(0, len(at)-len(have[object]))
		lost, total = lost+gone, total+len(at)
		alone = alone || gone > m.Hold.Min && len(have[object]) == 0
		_, kept := have[object]
		if object.kind == model.KindService {
			services, keptServices = services+1, keptServices+btoi(kept)
		} else {
			others, keptOthers = others+1, keptOthers+btoi(kept)
		}
	}
	everything := len(had) > 0
	switch {
	case total > 0:
		everything = lost == total
	case services > 0:
		everything = keptServices == 0
	default:
		everything = everything && keptOthers == 0
	}
	return alone || m.Hold.Suspicious(lost, total) || everything && m.Hold.Share < 1
}

// stock is what a source has: objects, each with the places of its endpoints.
type stock map[thing][]string

type thing struct {
	kind model.Kind
	name string
}

func (s stock) add(of thing, places ...string) {
	s[of] = slices.Compact(slices.Sorted(slices.Values(append(s[of], places...))))
}

func stockOf(m *mirror) stock {
	s, taken := stock{}, map[model.Ref]bool{}
	for ref, o := range m.objects {
		service, is := o.record.Spec.(model.Service)
		if !is {
			continue
		}
		var places []string
		for _, part := range o.owned {
			places = append(places, part.Spec.(model.Endpoint).Address)
		}
		for at, w := range m.objects {
			workload, is := w.record.Spec.(model.Workload)
			selects := service.WorkloadSelector.Len() > 0 && workload.Endpoint.Labels.Includes(service.WorkloadSelector)
			if is && at.Namespace == ref.Namespace && selects {
				places, taken[at] = append(places, workload.Endpoint.Address), true
			}
		}
		for host := range service.Hosts.All() {
			s.add(thing{model.KindService, fmt.Sprint(ref.Namespace, "/", nameOf(host))}, places...)
		}
	}
	for ref, o := range m.objects {
		workload, is := o.record.Spec.(model.Workload)
		of := thing{ref.Kind, fmt.Sprint(ref.Namespace, "/", ref.Name)}
		switch {
		case is && !taken[ref]:
			s.add(of, workload.Endpoint.Address)
		case !is && ref.Kind != model.KindService:
			s.add(of)
		}
	}
	return s
}

// leave has the sources leave that have to, or that could and did. It reports whether any has left.
func (p *play) leave() (left bool) {
	p.consider()
	for _, m := range slices.Clone(p.present) {
		gone := m.must
		if m.may && !gone && p.process != nil {
			gone = !p.process.Inside().Reads(m.Name)
		}
		m.may = false
		if m.leaving && gone {
			p.departs(m)
			left = true
		}
	}
	return left
}

func (p *play) departs(m *seat) {
	p.present = slices.DeleteFunc(p.present, func(o *seat) bool { return o == m })
	delete(p.mirrors, m.Name)
	p.offers = slices.DeleteFunc(p.offers, func(o *offer) bool { return o.Source == m.Name })
}

// leftover is the seat of a source that is stored, and that was not configured any more at
// a start while others had never been listed, or while its mark says that it waits for
// others. Nobody reads it.
func (p *play) leftover(name string, stored []model.Record) {
	m, d := &seat{entry: entry{Name: name, Hold: hold.Default()}, leaving: true, halted: true}, leavingOf(stored)
	if d.Successors.Len() > 0 {
		m.Hold = hold.Config{Share: d.Share, Min: int(d.Min), For: d.For}
	}
	m.waits = slices.DeleteFunc(d.Successors.Slice(), func(name string) bool { return !p.wants(name) })
	for _, e := range p.wanted {
		if !p.primed(e.Name) && !slices.Contains(m.waits, e.Name) {
			m.waits = append(m.waits, e.Name)
		}
	}
	if slices.Equal(m.waits, d.Successors.Slice()) {
		m.since = d.Since
	}
	p.mirrors[name] = mirrorOf(m.Hold, stored)
	p.present = append(p.present, m)
}

// leavingOf is what the mark of a source says of its leaving.
func leavingOf(stored []model.Record) (d model.Departure) {
	for _, r := range stored {
		if mark, is := r.Spec.(model.SourceMark); is {
			d = mark.Departure
		}
	}
	return d
}

func (p *play) wants(name string) bool {
	return slices.ContainsFunc(p.wanted, func(e entry) bool { return e.Name == name })
}

// renameTo is the configuration with another name for one source, which reads another
// folder: an empty one, one with every other object of the former, or the same.
func (p *play) renameTo(s step) []entry {
	wanted := p.renamed(s.Which)
	at := s.Which % len(wanted)
	from := p.registries[wanted[at].Registry]
	read := func(e entry) bool { return e.Registry == s.Registry }
	if s.Report == "same" || slices.ContainsFunc(wanted, read) {
		return wanted
	}
	to := p.registries[s.Registry]
	to.become(func() {
		clear(to.objects)
		clear(to.faults)
		for i, ref := range from.refs() {
			if s.Report == "half" && i%2 == 0 {
				to.objects[ref] = from.objects[ref]
			}
		}
	}, notice{})
	wanted[at].Registry = s.Registry
	return wanted
}

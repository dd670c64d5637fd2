package laws_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// item is a part of a baseline: an object by its name, or one of its endpoints by
// name and socket.
type item struct {
	object, name string
	socket       uint64 // zero for an object
}

func (o *offer) items() (list []item) {
	for _, b := range o.Objects {
		object := subject(b.Kind, b.Namespace, b.Name)
		list = append(list, item{object, object, 0})
		for _, socket := range b.Endpoints {
			list = append(list, item{object, fmt.Sprint(object, " ", socket), socket})
		}
	}
	return list
}

// said returns who speaks of an item, and whether anybody does.
func (s spoken) said(i item) (by map[string]bool, there bool) {
	sockets, there := s[i.object]
	if i.socket == 0 {
		return nil, there
	}
	return sockets[i.socket], len(sockets[i.socket]) > 0
}

// judge decides what is held of a baseline: all that is missing if it is too
// much of what the source had, or everything; else what is missing of objects
// that lost all of many endpoints.
func (p *play) judge(o *offer) {
	m, all := p.mirrors[o.Source], p.telling().spoken()
	o.judged, o.at, o.held, o.least, o.loose = true, time.Now(), map[string]bool{}, m.hold.For, p.leaves()
	missing, own := map[string]string{}, map[string]bool{} // items → objects
	var lost, had, total, services, left int               // endpoints that services lost, that are there, and that there were; services of the baseline, of which somebody speaks
	hadOf, lacks := map[string]int{}, map[string]bool{}
	for _, i := range o.items() {
		by, there := all.said(i)
		if _, seen := missing[i.name]; seen || own[i.name] {
			continue
		}
		if i.socket == 0 && strings.HasPrefix(i.object, string(model.KindService)) {
			services++
			left += btoi(there)
		}
		switch {
		case i.socket == 0 && there:
			own[i.name] = true
		case !there:
			missing[i.name] = i.object
			total, hadOf[i.object], lacks[i.object] = total+btoi(i.socket != 0), hadOf[i.object]+btoi(i.socket != 0), true
		case by[o.Source]:
			own[i.name] = true
			total, hadOf[i.object] = total+1, hadOf[i.object]+1
			had++
		}
	}
	endpoints, stored := 0, 0
	for ref := range m.records() {
		endpoints, stored = endpoints+weigh(ref), stored+btoi(ref.Kind == model.KindService)
	}
	lost = 0
	for object, n := range hadOf {
		lost += max(0, n-p.endpointsOf(o.Source, object))
	}
	everything := len(own) == 0
	if total > 0 {
		everything = everything || had+endpoints == 0
	} else {
		everything = everything || services > 0 && left+stored+endpoints == 0
	}
	replaced := had == 0 && total > m.hold.Min
	whole := m.hold.Share < 1 && (lost > 0 && lost >= m.hold.Min && float64(lost) >= m.hold.Share*float64(total) || everything || replaced)
	for item, object := range missing {
		alone := hadOf[object] > m.hold.Min && strings.HasPrefix(object, string(model.KindService)) && p.endpointsOf(o.Source, object) == 0
		if whole || alone && lacks[object] {
			o.held[item] = true
		}
	}
}

// endpointsOf counts the endpoints that a source has of an object.
func (p *play) endpointsOf(name, host string) (n int) {
	m := p.mirrors[name]
	count := func(at model.Ref, o object) {
		spec, _ := o.record.Spec.(model.Service)
		for named := range spec.Hosts.All() {
			if subject(model.KindService, at.Namespace, nameOf(named)) == host {
				n += len(o.owned)
				for ref, w := range m.objects {
					workload, is := w.record.Spec.(model.Workload)
					if is && ref.Namespace == at.Namespace && spec.WorkloadSelector.Len() > 0 && workload.Endpoint.Labels.Includes(spec.WorkloadSelector) {
						n++
					}
				}
			}
		}
	}
	for at, o := range m.objects {
		count(at, o)
	}
	return n
}

// listed has a listing judge what others have of its source.
func (p *play) listed(name string, s said) {
	for _, o := range p.offers {
		switch {
		case !s.whole || o.Source != name:
		case o.judged:
			p.ease(o)
		default:
			p.judge(o)
		}
	}
}

// leaves reports whether a source leaves. Whether it still speaks when another is
// listed, nobody can tell.
func (p *play) leaves() bool {
	return slices.ContainsFunc(p.present, func(m *seat) bool { return m.leaving })
}

// giveUp has nothing held any more of what others have of a source.
func (p *play) giveUp(name string) {
	for _, o := range p.offers {
		if o.Source == name && o.judged {
			o.held, o.eased = map[string]bool{}, true
		}
	}
}

// ease has a listing end what is held of what is there again.
func (p *play) ease(o *offer) {
	all := p.telling().spoken()
	o.least, o.loose = min(o.least, p.mirrors[o.Source].hold.For), o.loose || p.leaves()
	for _, i := range o.items() {
		if _, there := all.said(i); o.held[i.name] && there {
			delete(o.held, i.name)
			o.eased = true
		}
	}
}

package sourcetest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// leeway is the permitted stored state of an invalid service: any of its states since
// the last check.
type leeway struct {
	endpoints map[netip.AddrPort]bool // endpoints that it had, at some time
	absent    bool                    // the service was missing, at some time
	released  bool                    // an operator released records
}

func (m *mirroring) leewayOf(host string) *leeway {
	if m.left[host] == nil {
		m.left[host] = &leeway{endpoints: map[netip.AddrPort]bool{}, absent: true}
	}
	return m.left[host]
}

// widen adds the new content of the registry.
func (l *leeway) widen(s Services, host string) {
	service, has := s[host]
	l.absent = l.absent || !has
	if !service.Bad {
		for _, e := range service.Endpoints {
			l.endpoints[e] = true
		}
	}
}

// differs returns how the stored state of an invalid service exceeds the leeway.
func (l *leeway) differs(host string, has map[netip.AddrPort]bool, stored bool) string {
	if !stored && !l.absent && !l.released {
		return host + " cannot be taken, and its last good version is gone"
	}
	for e := range has {
		if !l.endpoints[e] {
			return fmt.Sprintf("%s cannot be taken, and has %s", host, e)
		}
	}
	return ""
}

// rest ends all faults, and waits until the store matches the registry.
func (m *mirroring) rest() {
	m.restore()
	if m.guard.calm() {
		m.guard.interrupt()
	}
	m.note("nothing goes wrong any more")
	m.pass(m.Lag + m.terms().MaxBackoff) // the earlier content may be on its way
	wrong := m.eventually(m.restsWithin(), m.unlike)
	if wrong != "" && m.content.anyBad() && !m.waits() {
		m.release() // the end of an unreadable text is not confirmed
		wrong = m.eventually(m.restsWithin(), m.unlike)
	}
	if wrong != "" && !m.waits() {
		m.violated("at rest: %s; %s", wrong, m.describe())
	}
	stored := m.served()
	for _, host := range mirrored {
		has, is := stored[host]
		m.left[host] = &leeway{endpoints: maps.Clone(has), absent: !is}
		if has == nil {
			m.left[host].endpoints = map[netip.AddrPort]bool{}
		}
		m.left[host].widen(m.content, host)
		for _, services := range m.guard.recent() {
			m.left[host].widen(services, host)
		}
		m.left[host].absent = !is
	}
}

func (m *mirroring) restsWithin() time.Duration {
	return m.Lag + m.soon() + 3*m.terms().Hold.For
}

// waits reports whether the source serves no record until everything can be read, as
// it may choose to.
func (m *mirroring) waits() bool {
	status := m.process.super.Status()
	return m.content.anyBad() && status.State == source.StateListing && status.Reason != "" && len(m.served()) == 0
}

// served returns the stored services.
func (m *mirroring) served() served {
	records := map[model.Ref]model.Record{}
	for rec := range m.process.store.List(model.Filter{Source: listed}) {
		records[rec.Ref] = rec
	}
	return servedIn(records)
}

// unlike returns how store and status differ from the registry.
func (m *mirroring) unlike() string {
	stored, status := m.served(), m.process.super.Status()
	if wrong := m.unlikeStored(stored); wrong != "" {
		return wrong
	}
	for range m.process.store.List(model.Filter{Source: listed, Kind: model.KindHold}) {
		return "something is held"
	}
	endpoints := 0
	for _, all := range stored {
		endpoints += len(all)
	}
	switch {
	case status.State != source.StateLive:
		return fmt.Sprintf("it is %s: %s", status.State, status.Reason)
	case status.Services != len(stored) || status.Endpoints != endpoints || status.Held != 0:
		return fmt.Sprintf("%d services and %d endpoints are stored, and %d, %d and %d held are shown", len(stored), endpoints, status.Services, status.Endpoints, status.Held)
	case m.content.anyBad() != (len(status.Rejected) > 0):
		return fmt.Sprintf("the registry has %s, and rejected are %v", m.content, status.Rejected)
	case slices.ContainsFunc(status.Rejected, func(f model.Rejection) bool {
		return f.Reason == "" || f.Object == "" && f.Where == "" && f.Place == ""
	}):
		return fmt.Sprintf("nobody learns what is wrong where from %v", status.Rejected)
	}
	return ""
}

func (m *mirroring) unlikeStored(stored served) string {
	for _, host := range mirrored {
		has, is := stored[host]
		want, there := m.content[host]
		wrong := ""
		switch {
		case !there && is:
			wrong = host + " is stored, and the registry has it not"
		case there && want.Bad:
			wrong = m.leewayOf(host).differs(host, has, is)
		case there:
			wrong = stored.difference(host, want)
		}
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

// look makes one event happen to a fully stored registry, and checks the outcome.
func (m *mirroring) look() {
	m.heal()
	m.rest()
	m.pass(m.terms().Hold.For + m.Lag) // earlier losses count no more
	endpoints := 0
	for _, service := range m.content {
		endpoints += len(service.Endpoints)
	}
	switch what := rapid.IntRange(0, 3).Draw(m.t, "look"); {
	case what == 0:
		m.outage()
	case what == 3:
		m.gainOne()
	case what == 1 && endpoints > 2:
		m.loseOne()
	case endpoints > 0:
		m.loseEverything()
	}
}

// outage makes the registry fail, and lose services meanwhile. The status shows it,
// and every record stays.
func (m *mirroring) outage() {
	stored := m.served()
	m.fail()
	if rapid.Bool().Draw(m.t, "restarts") {
		m.stop()
		m.start()
	}
	wrong := m.eventually(m.soon(), func() string {
		if status := m.process.super.Status(); status.State != source.StateStale || status.Reason == "" {
			return fmt.Sprintf("it is %s: %q", status.State, status.Reason)
		}
		return ""
	})
	m.set(m.content.without(func(_ string, i int) bool { return i%3 == 0 }))
	m.pass(m.Lag)
	if now := m.served(); wrong == "" && !maps.EqualFunc(stored, now, maps.Equal) {
		wrong = fmt.Sprintf("%v was stored, and %v is", stored, now)
	}
	if wrong != "" {
		m.violated("the registry fails: %s; %s", wrong, m.describe())
	}
}

// loseOne removes one endpoint, which is deleted soon.
func (m *mirroring) loseOne() {
	victim := slices.Sorted(maps.Keys(m.content))[0]
	m.set(m.content.without(func(host string, i int) bool { return host == victim && i == 0 }))
	if wrong := m.eventually(m.soon(), m.unlike); wrong != "" {
		m.violated("one endpoint is gone: %s; %s", wrong, m.describe())
	}
}

// gainOne adds one endpoint, which is stored soon.
func (m *mirroring) gainOne() {
	next, host := maps.Clone(m.content), mirrored[0]
	next[host] = Service{Endpoints: append(slices.Clone(next[host].Endpoints), endpointAt(host, 100))}
	if slices.Contains(m.content[host].Endpoints, endpointAt(host, 100)) {
		return
	}
	m.set(next)
	if wrong := m.eventually(m.soon(), m.unlike); wrong != "" {
		m.violated("one endpoint is new: %s; %s", wrong, m.describe())
	}
}

// loseEverything removes everything, which is held, and restored at once if it comes
// back. A registry that reports deletions does so in some of its outages, too, and
// then no hold is needed: so there is no process meanwhile.
func (m *mirroring) loseEverything() {
	before := m.content
	if m.Reports {
		m.stop()
		m.set(Services{})
		m.start()
	} else {
		m.set(Services{})
	}
	wrong := m.eventually(m.soon(), func() string {
		if status := m.process.super.Status(); status.State != source.StateHeld || status.Reason == "" {
			return fmt.Sprintf("it is %s: %q", status.State, status.Reason)
		}
		return ""
	})
	if wrong != "" {
		m.violated("everything is gone, and nothing is held: %s", wrong)
	}
	switch rapid.IntRange(0, 2).Draw(m.t, "then") {
	case 0: // everything stays gone
	case 1: // no listing can confirm it for as long as it takes
		m.fail()
		m.pass(m.terms().Hold.For)
		m.restore()
	default:
		within := m.soon()
		if m.Reports {
			within = m.restsWithin() // a single endpoint does not show its service
		}
		m.set(before)
		if wrong := m.eventually(within, m.unlike); wrong != "" {
			m.violated("everything is back: %s; %s", wrong, m.describe())
		}
	}
}

// idle lets time pass without changes, and makes the source list anew: no commit
// follows.
func (m *mirroring) idle() {
	before, runs, wholes := m.guard.seen()
	m.guard.interrupt()
	wrong := m.eventually(m.Lag+m.soon(), func() string {
		if _, now, listings := m.guard.seen(); now == runs || listings == wholes {
			return "the source does not list again"
		}
		return ""
	})
	m.pass(2 * m.Lag)
	if after, _, _ := m.guard.seen(); after != before {
		wrong = fmt.Sprintf("%d commits, though nothing has changed", after-before)
	}
	if wrong != "" {
		m.violated("idle: %s; %s", wrong, m.describe())
	}
}

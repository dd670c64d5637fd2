package push

import "time"

// lane is a debounce class: it holds back the changes of a type for the subscribers of a
// mode, until its debounce is over. Only the dispatcher uses it, except its step.
type lane struct {
	debounce    Debounce
	before      World // the world before the first waiting change; nil while none waits
	changed     map[string]change
	since       time.Time // commit of the oldest waiting change
	first, last time.Time // when the first and the newest change came

	// step is the step of the first waiting change; zero while none waits. Earlier changes
	// were marked. The engine's step guards it.
	step uint64
}

// hold delays a change; before is the world without it.
func (l *lane) hold(before World, step uint64, name string, c change, since, now time.Time) {
	if l.before == nil {
		l.step = step
		l.before, l.changed, l.first, l.since = before, map[string]change{}, now, time.Time{}
	}
	if was, ok := l.changed[name]; ok {
		c = was.and(c)
		c.again = true
	}
	l.changed[name] = c
	l.last = now
	l.since = oldest(l.since, since)
}

// due returns when the waiting changes are to be delivered; ok is false if none wait.
func (l *lane) due() (at time.Time, ok bool) {
	if l.before == nil {
		return time.Time{}, false
	}
	return l.debounce.Due(l.first, l.last, len(l.changed)), true
}

// clear empties the debounce class.
func (l *lane) clear() { l.before, l.changed, l.step = nil, nil, 0 }

// eachLane calls yield for every debounce class.
func (b *table) eachLane(yield func(*typeInfo, Mode, *lane)) {
	for _, info := range b.types {
		for m := range modes {
			for l := range info.lanesOf(m) {
				yield(info, m, l)
			}
		}
	}
}

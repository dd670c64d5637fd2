package push

import "time"

// lane holds back the changes of a type for the subscribers of a mode, until
// its debounce is over. The dispatcher alone uses it, but for its step.
type lane struct {
	debounce    Debounce
	before      World // the world before the first change that waits; nil while none does
	changed     map[string]change
	since       time.Time // commit of the oldest of them
	first, last time.Time // when the first and the newest came

	// step is that of the first change that waits; zero while none does. The changes
	// before it were marked. The engine's step guards it.
	step uint64
}

// hold keeps back a change of the world before.
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

// due is when what waits is to be delivered; ok is false if nothing waits.
func (l *lane) due() (at time.Time, ok bool) {
	if l.before == nil {
		return time.Time{}, false
	}
	return l.debounce.Due(l.first, l.last, len(l.changed)), true
}

// clear empties the lane.
func (l *lane) clear() { l.before, l.changed, l.step = nil, nil, 0 }

// eachLane calls yield for every lane that there is.
func (b *table) eachLane(yield func(*typeInfo, Mode, *lane)) {
	for _, info := range b.types {
		for m := range modes {
			for l := range info.lanesOf(m) {
				yield(info, m, l)
			}
		}
	}
}

package push

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// class is a debounce class: it delays the changes of some resources of a type for the
// subscribers of a mode. Only the dispatcher uses it, except its step.
type class struct {
	t        world.Type
	mode     world.Mode
	debounce world.Debounce
	replaces bool // its changes may replace removed resources of the type

	before      world.World // the world before the first waiting change; nil while none waits
	changed     map[string]change
	since       time.Time // commit of the oldest waiting change
	first, last time.Time // when the first and the newest change came

	// step is the step of the first waiting change; zero while none waits. Earlier changes
	// were marked. The engine's step guards it.
	step uint64
}

// delay delays a change; before is the world without it.
func (c *class) delay(before world.World, step uint64, name string, what change, since, now time.Time) {
	if c.before == nil {
		c.step = step
		c.before, c.changed, c.first, c.since = before, map[string]change{}, now, time.Time{}
	}
	if was, ok := c.changed[name]; ok {
		what = was.and(what)
		what.again = true
	}
	c.changed[name] = what
	c.last = now
	c.since = oldest(c.since, since)
}

// due returns when the waiting changes are to be delivered; ok is false if none wait.
func (c *class) due() (at time.Time, ok bool) {
	if c.before == nil {
		return time.Time{}, false
	}
	return c.debounce.Due(c.first, c.last, len(c.changed)), true
}

// clear empties the debounce class.
func (c *class) clear() { c.before, c.changed, c.step = nil, nil, 0 }

// classesOf returns the debounce classes of a type, by mode: see [typeInfo].
func classesOf(t world.Type, spec *world.TypeSpec) (classes [world.Modes][]*class) {
	add := func(debounces [world.Modes]world.Debounce, replaces bool) {
		for m, d := range debounces {
			var c *class
			if d != (world.Debounce{}) {
				c = &class{t: t, mode: world.Mode(m), debounce: d, replaces: replaces}
			}
			classes[m] = append(classes[m], c)
		}
	}
	add(spec.Debounce, false)
	for _, of := range spec.NameDebounces {
		add(of.Debounce, of.DelayRemovals)
	}
	return classes
}

package index

import "github.com/isthmus-mesh/isthmus/internal/slots"

// numbers are the entries that share an entry of the index. A name may have as many as
// there are streams, so they are kept as small numbers.
type numbers struct{ slots.Table[number] }

// number identifies an entry in the index; 0 for none.
type number uint32

// Free reports whether the number is none.
func (n number) Free() bool { return n == 0 }

// Key spreads small numbers over 64 bits.
func (n number) Key() uint64 { return uint64(n) * spread }

const spread = 0x9e3779b97f4a7c15

// at returns the slot of a number; -1 if there is none.
func (c *numbers) at(n number) int {
	if c.N == 0 {
		return -1
	}
	for at := c.Home(n.Key()); c.List[at] != 0; at = c.Next(at) {
		if c.List[at] == n {
			return at
		}
	}
	return -1
}

func (c *numbers) add(n number) {
	if c.at(n) < 0 {
		c.Put(n)
	}
}

func (c *numbers) remove(n number) {
	if at := c.at(n); at >= 0 {
		c.Take(at)
	}
}

// roll assigns numbers to entries. A freed number is assigned again.
type roll[O any] struct {
	by   []*Entry[O] // by number; nil for a free one
	free []number
}

func (r *roll[O]) enter(e *Entry[O]) {
	if last := len(r.free) - 1; last >= 0 {
		e.number, r.free = r.free[last], r.free[:last]
		r.by[e.number] = e
		return
	}
	if len(r.by) == 0 {
		r.by = append(r.by, nil) // no entry has the number 0
	}
	e.number = number(len(r.by)) //nolint:gosec // there are not as many
	r.by = append(r.by, e)
}

func (r *roll[O]) leave(e *Entry[O]) {
	r.by[e.number] = nil
	r.free = append(r.free, e.number)
}

package push

import "github.com/isthmus-mesh/isthmus/internal/slots"

// numbers are the interests that share an entry of the index. A name may have as many as
// there are streams, so they are kept as small numbers.
type numbers struct{ slots.Table[number] }

// number identifies an interest in the index; 0 for none.
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

// roll assigns numbers to interests. A freed number is assigned again.
type roll struct {
	by   []*interest // by number; nil for a free one
	free []number
}

func (r *roll) enter(i *interest) {
	if last := len(r.free) - 1; last >= 0 {
		i.number, r.free = r.free[last], r.free[:last]
		r.by[i.number] = i
		return
	}
	if len(r.by) == 0 {
		r.by = append(r.by, nil) // no interest has the number 0
	}
	i.number = number(len(r.by)) //nolint:gosec // there are not as many
	r.by = append(r.by, i)
}

func (r *roll) leave(i *interest) {
	r.by[i.number] = nil
	r.free = append(r.free, i.number)
}

package push

import "slices"

// refusal is what is known of a name that came in a refused response. If others
// came with it, nobody knows which of them was at fault, nor what the
// subscriber made of them. None of them is sent again as it is until something
// of what was refused changes or goes; then the others are tried again.
type refusal struct {
	version Version // as it was refused; zero for a removal
	alone   bool    // nothing else was new in the response: the fault is its own
	again   bool    // it is to be tried again
}

// refuse notes what is in doubt after a refusal: what the response brought and
// no later one brought anew. It reports whether the response was awaited.
func (st *state) refuse(serial uint64) bool {
	at := slices.IndexFunc(st.flights, func(f *flight) bool { return f.serial == serial })
	var f flight // of one too long ago there is no more to know
	if at >= 0 {
		f = *st.flights[at]
	}
	left := 0
	for name, by := range st.aloft {
		if by != serial {
			continue
		}
		left++
		delete(st.aloft, name)
		st.refused[name] = refusal{version: st.held[name].version, alone: f.brought == 1 && !st.full}
		if !st.full {
			st.doubt(name)
		}
	}
	// The fault may have gone with what is no longer wanted, or was sent anew.
	gone := left > 0 && left != f.brought
	if st.full { // a newer set has an answer of its own
		gone = at >= 0 && at == len(st.flights)-1 && f.version != st.sum
	}
	if gone {
		st.retry()
	}
	return at >= 0 || left > 0
}

// retry has what was refused tried again. What was at fault alone is not.
func (st *state) retry() {
	for name, r := range st.refused {
		switch {
		case st.full: // in one set in any case
			st.want(name, pending{force: true})
		case !r.alone:
			r.again, st.again = true, true
			st.refused[name] = r
		}
	}
}

// retryHalf puts half of what is to be tried again on the list. Half of the
// rest follows with each answer: what is at fault takes ever fewer others with
// it, and so many of them cost a few responses instead of one for each change.
func (st *state) retryHalf() {
	if !st.again {
		return
	}
	var left []string
	for name, r := range st.refused {
		if r.again {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	half := left[:(len(left)+1)/2]
	for _, name := range half {
		r := st.refused[name]
		r.again = false
		st.refused[name] = r
		st.want(name, pending{force: true})
	}
	st.again = len(half) < len(left)
}

// pardon forgets that a name was refused, for it is not any more what it was.
// What was refused with it may be fine without it.
func (st *state) pardon(name string) {
	if _, was := st.refused[name]; was {
		delete(st.refused, name)
		st.retry()
	}
}

package controller

// ordered is a heap whose elements know their slot in it. So any of them can be moved or
// removed.
type ordered[E element[E]] []E

type element[E any] interface {
	before(other E) bool
	movedTo(slot int)
}

func (h ordered[E]) Len() int { return len(h) }

func (h ordered[E]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h ordered[E]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].movedTo(i)
	h[j].movedTo(j)
}

// Push implements [heap.Interface].
func (h *ordered[E]) Push(x any) {
	e, _ := x.(E)
	e.movedTo(len(*h))
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *ordered[E]) Pop() any {
	var none E
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = none
	*h = old[:len(old)-1]
	return last
}

package push

import (
	"iter"
	"slices"
)

// Fragments are the end of a resource's content, in pieces that resources share. They
// are immutable.
type Fragments interface {
	// Size is how many bytes all of the pieces have.
	Size() int
	// All yields the pieces in order.
	All() iter.Seq[[]byte]
}

// Size is how many bytes the content has.
func (e *Encoded) Size() int {
	if e.Tail == nil {
		return len(e.Body)
	}
	return len(e.Body) + e.Tail.Size()
}

// Joined returns the resource with all of its content in one piece, which is not shared.
func (e Encoded) Joined() Encoded {
	if e.Tail == nil {
		return e
	}
	e.Body = slices.Grow(slices.Clone(e.Body), e.Tail.Size())
	for piece := range e.Tail.All() {
		e.Body = append(e.Body, piece...)
	}
	e.Tail = nil
	return e
}

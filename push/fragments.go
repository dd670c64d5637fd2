package push

import (
	"iter"
	"slices"
)

// Fragments are the end of a resource's content, in pieces that resources share. They are
// immutable.
type Fragments interface {
	// Size returns the bytes of all pieces.
	Size() int
	// All yields the pieces in order.
	All() iter.Seq[[]byte]
}

// Size returns the bytes of the content.
func (e *Encoded) Size() int {
	if e.Tail == nil {
		return len(e.Body)
	}
	return len(e.Body) + e.Tail.Size()
}

// Joined returns the resource with all of its content in one unshared piece.
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

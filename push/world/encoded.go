package world

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// Encoded is the content of a resource.
type Encoded struct {
	Name    string
	Version Version
	Body    []byte    // in the protocol's encoding; never written again
	Tail    Fragments // the bytes after Body; nil if there are none
	Framed  bool      // the body already contains the protocol's frame, of any number of resources
	Shown   []byte    // the body for people, without secrets; nil if that is Body
}

// Visible returns the resource for people, in one unshared piece.
func (e Encoded) Visible() Encoded {
	if e.Shown == nil {
		return e.Joined()
	}
	return Encoded{Name: e.Name, Version: e.Version, Body: e.Shown}
}

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

// Label is the identity of a resource that subscribers hold; they all share it. It does not
// keep the resource itself in memory: otherwise a slow subscriber would keep revisions that
// all others have replaced.
type Label struct {
	Name   string
	Member Member
	Hash   uint64 // of the name, by [Reader.Hash]
	// Version and Made, the time of its first use here, are for display only.
	Version Version
	Made    time.Time
	Whole   *Resource // only for subscribers that are sent the full set each time
}

// Resource is an encoded resource with the bytes that the protocol writes before it. Its
// content is immutable, and every stream shares it.
type Resource struct {
	Encoded
	// Heads are the bytes before Body for a [WholeState] and for a [Delta] subscriber.
	Heads [Modes][]byte

	Own    Label  // for subscribers that keep the resource
	Shared *Label // for those that do not

	noted *atomic.Bool // whether its name is in [Reader.Issued]
}

// Bytes returns the length of the resource in a message of a mode.
func (r *Resource) Bytes(m Mode) int { return len(r.Heads[m]) + r.Size() }

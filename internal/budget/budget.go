// Package budget bounds the memory that several parts of a process use at once for
// what comes from outside. Who is about to read something takes what that may need, and
// waits until others have given back enough; so what is read together never needs more
// than there is, however much there is to read.
//
// A budget may be divided: what is taken of a [Budget.Share] is taken of the whole,
// too. So one reader cannot keep all others waiting.
//
// It knows nothing of what the memory is used for. All methods may be called from
// any goroutine. Nobody who has taken something takes more of the same budget before
// that is given back, or two such wait for each other for ever.
package budget

import (
	"context"
	"runtime/debug"

	"golang.org/x/sync/semaphore"
)

// Most is what a process uses at most, however much memory it has.
const Most = 512 << 20

// Budget is a number of bytes. A nil one is without bound.
type Budget struct {
	bytes int64
	left  *semaphore.Weighted
	whole *Budget // that this is a share of; nil if of none
}

// New returns a budget of so many bytes.
func New(bytes int64) *Budget { return &Budget{bytes: bytes, left: semaphore.NewWeighted(bytes)} }

// OfProcess returns a budget of a third of the memory that the program may use
// (GOMEMLIMIT), and of no more than [Most].
func OfProcess() *Budget {
	return New(min(debug.SetMemoryLimit(-1)/3, Most)) // asks, and sets nothing
}

// Share returns a budget for one of several users: half of the whole.
func (b *Budget) Share() *Budget {
	if b == nil {
		return nil
	}
	share := New(max(b.bytes/2, 1))
	share.whole = b
	return share
}

// Bytes is how many bytes there are, taken or not, if that is less than most; else
// it is most.
func (b *Budget) Bytes(most int64) int64 {
	if b == nil {
		return most
	}
	return min(b.bytes, most)
}

// Take takes bytes, or all there are if that is less, and waits until they are free.
// They are given back by calling give. It fails only when ctx ends before.
func (b *Budget) Take(ctx context.Context, bytes int64) (give func(), err error) {
	if b == nil {
		return func() {}, ctx.Err()
	}
	bytes = min(bytes, b.bytes)
	if err := b.left.Acquire(ctx, bytes); err != nil {
		return nil, context.Cause(ctx)
	}
	giveWhole, err := b.whole.Take(ctx, bytes)
	if err != nil {
		b.left.Release(bytes)
		return nil, err
	}
	return func() { giveWhole(); b.left.Release(bytes) }, nil
}

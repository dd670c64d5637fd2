// Package budget bounds the memory that several parts of a process use at once for
// what comes from outside. Who is about to read something takes what that may need, and
// waits until others have given back enough; so what is read together never needs more
// than there is, however much there is to read.
//
// A budget may be divided: what is taken of a [Budget.Share] is taken of the whole,
// too. So one reader cannot keep all others waiting. What a reader keeps for long is not
// taken, for nobody could wait until it is given back. [Budget.Lasting] bounds it instead,
// by what there is for each.
//
// It knows nothing of what the memory is used for. All methods may be called from
// any goroutine. Nobody who has taken something takes more of the same budget before
// that is given back, or two such wait for each other for ever.
package budget

import (
	"context"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Most is what a process uses at most, however much memory it has.
const Most = 512 << 20

// Budget is a number of bytes. A nil one is without bound.
type Budget struct {
	bytes int64
	left  *semaphore.Weighted
	whole *Budget // that this is a share of; nil if of none

	name    string // of the user of a share
	lasting int64  // what all users together may keep for long
	mu      sync.Mutex
	keepers map[string]struct{} // the users that keep anything
}

// New returns a budget of so many bytes, half of which may be kept for long.
func New(bytes int64) *Budget {
	return &Budget{bytes: bytes, left: semaphore.NewWeighted(bytes), lasting: bytes / 2, keepers: map[string]struct{}{}}
}

// OfProcess returns a budget of a third of the memory that the program may use
// (GOMEMLIMIT), and of no more than [Most]. What is kept for long may be a sixth of that
// memory, however much it is: with what is made of it, it takes some three times as much.
func OfProcess() *Budget {
	limit := debug.SetMemoryLimit(-1) // asks, and sets nothing
	b := New(min(limit/3, Most))
	b.lasting = limit / 6
	return b
}

// Share returns a budget for one of several users: half of the whole. Another one of the
// same name is instead of the first.
func (b *Budget) Share(name string) *Budget {
	if b == nil {
		return nil
	}
	share := New(max(b.bytes/2, 1))
	share.whole, share.name = b, name
	return share
}

// Keep says that the user of a share keeps something for long, before it does: nobody
// gives back what was kept while there were fewer.
func (b *Budget) Keep() {
	if b == nil || b.whole == nil {
		return
	}
	b.whole.mu.Lock()
	defer b.whole.mu.Unlock()
	b.whole.keepers[b.name] = struct{}{}
}

// Leave says that a user of a share has gone.
func (b *Budget) Leave(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keepers, name)
}

// Lasting is how many bytes one user may keep for long, if that is less than most; else
// it is most. It is less the more users there are that keep something.
func (b *Budget) Lasting(most int64) int64 {
	if b == nil || b.whole == nil {
		return b.Bytes(most)
	}
	b.whole.mu.Lock()
	defer b.whole.mu.Unlock()
	return min(b.Bytes(most), b.whole.lasting/int64(max(len(b.whole.keepers), 1)))
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

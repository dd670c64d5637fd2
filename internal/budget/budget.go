// Package budget bounds the memory that several parts of a process use at once for foreign
// input. A reader takes the bytes that it may need before it reads, and waits until others
// have given back enough. Concurrent reads then never need more than the budget, however
// much there is to read.
//
// A budget may be divided: bytes taken of a [Budget.Share] are also taken of the whole. One
// reader therefore cannot keep all others waiting. Bytes that a reader keeps for long are
// not taken, because others would wait for them without end. [Budget.Lasting] bounds them
// instead, by an equal part for each user.
//
// It does not know the use of the memory. All methods may be called from any goroutine. A
// user must not take more of the same budget before it gives back the first bytes: two such
// users would wait for each other for ever.
package budget

import (
	"context"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Most is the maximum of a process, however much memory it has.
const Most = 512 << 20

// Budget is a number of bytes. A nil one is without bound.
type Budget struct {
	bytes int64
	left  *semaphore.Weighted
	whole *Budget // the budget that this is a share of; nil if it is none

	name    string // of the user of a share
	lasting int64  // bytes that all users together may keep for long
	mu      sync.Mutex
	keepers map[string]struct{} // the users that keep bytes for long
}

// New returns a budget of so many bytes; half of them may be kept for long.
func New(bytes int64) *Budget {
	return &Budget{bytes: bytes, left: semaphore.NewWeighted(bytes), lasting: bytes / 2, keepers: map[string]struct{}{}}
}

// OfProcess returns a budget of a third of the memory that the program may use
// (GOMEMLIMIT), at most [Most]. A sixth of that memory may be kept for long, without
// another limit: with the data derived from it, it takes some three times as much.
func OfProcess() *Budget {
	limit := debug.SetMemoryLimit(-1) // asks, and sets nothing
	b := New(min(limit/3, Most))
	b.lasting = limit / 6
	return b
}

// Share returns a budget for one of several users: half of the whole. Another share of the
// same name replaces the first.
func (b *Budget) Share(name string) *Budget {
	if b == nil {
		return nil
	}
	share := New(max(b.bytes/2, 1))
	share.whole, share.name = b, name
	return share
}

// Keep records that the user of a share keeps bytes for long, before it does. Earlier users
// do not give back bytes that they kept while there were fewer users.
func (b *Budget) Keep() {
	if b == nil || b.whole == nil {
		return
	}
	b.whole.mu.Lock()
	defer b.whole.mu.Unlock()
	b.whole.keepers[b.name] = struct{}{}
}

// Leave records that a user of a share has gone.
func (b *Budget) Leave(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keepers, name)
}

// Lasting returns the bytes that one user may keep for long, at most most. It decreases
// with the number of users that keep bytes.
func (b *Budget) Lasting(most int64) int64 {
	if b == nil || b.whole == nil {
		return b.Bytes(most)
	}
	b.whole.mu.Lock()
	defer b.whole.mu.Unlock()
	return min(b.Bytes(most), b.whole.lasting/int64(max(len(b.whole.keepers), 1)))
}

// Bytes returns the size of the budget, taken or not, at most most.
func (b *Budget) Bytes(most int64) int64 {
	if b == nil {
		return most
	}
	return min(b.bytes, most)
}

// Take takes bytes, or the whole budget if that is less, and waits until they are free.
// Calling give returns them. It fails only when ctx ends before.
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

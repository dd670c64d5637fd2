package intake

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Room is the room for incoming large messages, of each client and of all. A message takes
// its room before its bytes may be sent, and all of it at once: if each took a part, none
// might ever be complete.
type Room struct {
	each int64
	all  *semaphore.Weighted

	mu sync.Mutex
	by map[string]*share
}

// share is the room of one client.
type share struct {
	*semaphore.Weighted
	users int
}

// NewRoom makes room for so many bytes of all clients, and for half of them of one client.
// One client's room is at least one message of the largest size.
func NewRoom(bytes, message int) *Room {
	each := int64(max(bytes/2, message))
	return &Room{each: each, all: semaphore.NewWeighted(2 * each), by: map[string]*share{}}
}

// acquire waits for room for bytes of a client, at most for patience.
func (r *Room) acquire(ctx context.Context, client string, bytes int, patience time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	own, n := r.enter(client), int64(bytes)
	if err := own.Acquire(ctx, n); err != nil {
		r.leave(client)
		return nil, tooLarge("there was no room for a request of %d bytes within %s: other large ones of the same client, which may have %d bytes under way, have not come yet; try again later",
			bytes, patience, r.each)
	}
	if err := r.all.Acquire(ctx, n); err != nil {
		own.Release(n)
		r.leave(client)
		return nil, tooLarge("there was no room for a request of %d bytes within %s: large ones of other clients have not come yet; try again later", bytes, patience)
	}
	return func() {
		r.all.Release(n)
		own.Release(n)
		r.leave(client)
	}, nil
}

func (r *Room) enter(client string) *share {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.by[client]
	if own == nil {
		own = &share{Weighted: semaphore.NewWeighted(r.each)}
		r.by[client] = own
	}
	own.users++
	return own
}

func (r *Room) leave(client string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.by[client]
	if own.users--; own.users == 0 {
		delete(r.by, client)
	}
}

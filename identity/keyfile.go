package identity

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// keySource is the place of the keys of one issuer.
type keySource interface {
	// find returns the key of an id. It waits no longer than keysWait.
	find(ctx context.Context, id string) (key, error)
	// follow keeps the keys current until ctx ends.
	follow(ctx context.Context)
	// problem returns why the keys cannot be read, or cannot all be used; zero if they can.
	problem() Problem
}

var _, _ keySource = (*fileKeys)(nil), (*remoteKeys)(nil)

// filesEvery is between two looks at a file without use.
const filesEvery = 10 * time.Second

// mostAge is for how long keys are used after they could last be read.
const mostAge = 24 * time.Hour

// lookup returns a key of a set that was last known to be valid at a time.
func (s keySet) lookup(id string, valid time.Time, f fault) (key, error) {
	one, ok := s.keys[id]
	switch {
	case valid.IsZero() && f.err == nil:
		return key{}, errUnread
	case valid.IsZero():
		return key{}, fmt.Errorf("the keys of the issuer cannot be read since %s: %w", f.when(), f.err)
	case time.Since(valid) > mostAge && f.err == nil:
		return key{}, errUnread
	case time.Since(valid) > mostAge:
		return key{}, fmt.Errorf("the keys of the issuer cannot be read since %s, and are used for %s at most: %w", f.when(), mostAge, f.err)
	case !ok && f.err != nil:
		return key{}, fmt.Errorf("%w; its keys cannot be read since %s: %w", &unknownKey{id}, f.when(), f.err)
	case !ok:
		return key{}, &unknownKey{id}
	default:
		return one, nil
	}
}

// unknownKey is the error of a key id that the set of the issuer does not have.
type unknownKey struct{ id string }

// Error implements error.
func (u *unknownKey) Error() string {
	return fmt.Sprintf("the issuer has no usable key with the id %s", clip(u.id))
}

// fileKeys are the keys in a file. Each use looks at the file.
type fileKeys struct {
	file *watched[keySet]
	log  *slog.Logger
}

func watchedKeys(path string) *watched[keySet] {
	return &watched[keySet]{path: path, most: mostKeysText}
}

func (f *fileKeys) find(_ context.Context, id string) (key, error) {
	now := f.file.look(parseKeySet)
	return now.value.lookup(id, now.valid, now.fault)
}

// follow notices a fault although no token comes.
func (f *fileKeys) follow(ctx context.Context) {
	var last fault
	for {
		now := f.file.look(parseKeySet)
		last = report(f.log, last, now.fault)
		if !wait.Sleep(ctx, filesEvery) {
			return
		}
	}
}

func (f *fileKeys) problem() Problem {
	now := f.file.look(parseKeySet)
	return now.value.problemOf(now.fault, "correct the file of keysFile; it is read again when it changes")
}

// report logs the beginning and the end of a fault, and returns the present one.
func report(log *slog.Logger, before, now fault) fault {
	switch {
	case now.err != nil && before.err == nil:
		log.Error("keys or revocations cannot be read; the last valid ones stay in use", "err", now.err)
	case now.err == nil && before.err != nil:
		log.Info("keys or revocations can be read again", "since", before.since)
	}
	return now
}

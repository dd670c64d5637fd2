package store

import (
	"context"
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// EpochError reports that a reader asked for a moment of another epoch, which the
// store will never reach. The reader has to read anew, without that moment.
type EpochError struct{ Wanted, Now model.At }

func (e *EpochError) Error() string {
	return fmt.Sprintf("revision %d of epoch %d will never come: the store was started anew or restored since, and is at revision %d of epoch %d; "+
		"watch again without it", e.Wanted.Revision, e.Wanted.Epoch, e.Now.Revision, e.Now.Epoch)
}

// reach waits for a state that is not older than at, and returns it.
func (r *Replica) reach(ctx context.Context, at model.At) (*state, error) {
	for {
		now := r.state.Load()
		switch {
		case at.Epoch != 0 && at.Epoch != now.at.Epoch:
			return nil, &EpochError{at, now.at}
		case now.at.Revision >= at.Revision:
			return now, nil
		}
		if _, err := now.position.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// seek returns the position after a moment, from which its reader can continue. It
// returns nil and the reason if the history no longer leads on from there. It waits
// for a moment in the future: from an earlier position, the reader would be sent
// commits that it already has.
func (h *history) seek(ctx context.Context, held model.At) (found *position, lost string, err error) {
	at := h.oldest.Load()
	if at.at.Epoch != held.Epoch {
		return nil, "the store was started anew or restored since the reader left", nil
	}
	if at.at.Revision > held.Revision {
		return nil, h.gone(held.Revision), nil
	}
	for {
		if next := at.next.Load(); next == nil && at.at.Revision >= held.Revision {
			return at, "", nil
		}
		next, err := at.wait(ctx)
		switch {
		case err != nil:
			return nil, "", err
		case next.forgotten():
			return nil, next.lost, nil
		case next.revision > held.Revision:
			return at, "", nil
		}
		at = next.after
	}
}

package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// errNewEpoch ends a run. A store in a new epoch, such as one restored from a copy,
// may lack recent records. A source that passes on only changes would not repeat
// them, so the source runs anew and lists.
var errNewEpoch = errors.New("the store was restored, and may lack what was stored since; the registry is listed anew")

// watchEpoch ends the run once the store is in another epoch, or if watching fails.
// It watches the mark of the source, which hardly ever changes.
func (k *sink) watchEpoch(ctx context.Context, end context.CancelCauseFunc) {
	mark := markRef(k.name)
	for batch, err := range k.store.WatchFrom(ctx, model.Filter{Kind: mark.Kind, Source: k.name}, model.Start{}) {
		if err != nil {
			if ctx.Err() == nil {
				end(fmt.Errorf("watch the store: %w", err))
			}
			return
		}
		for _, event := range batch.Events {
			if snapshot, is := event.(model.EndOfSnapshot); is && snapshot.Epoch != k.epoch {
				end(errNewEpoch)
				return
			}
		}
	}
}

// outlived reports whether the store is in another epoch than when the run began.
func (k *sink) outlived() bool { return k.store.At().Epoch != k.epoch }

// storeRestored reports that stored records may be older than the last readings.
func (s *Supervisor) storeRestored() {
	s.unmarked()
	s.lost(errNewEpoch.Error())
	s.cfg.Log.Warn("the store was restored", "source", s.name, "reason", errNewEpoch.Error())
}

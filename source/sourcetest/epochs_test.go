package sourcetest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// restored is a store in memory that is restored from a copy of itself.
type restored struct {
	*store.Memory
	mu sync.Mutex // held while it is copied, and by who writes
}

// Process implements [Shared].
func (r *restored) Process(context.Context) Store { return r }

func (r *restored) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Memory.Commit(ctx, c)
}

// NewEpoch implements [Reborn].
func (r *restored) NewEpoch() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []model.Record
	for record := range r.List(model.Filter{}) {
		record.Revision = uint64(len(all) + 1)
		all = append(all, record)
	}
	if err := r.Restore(uint64(len(all)), slices.Values(all)); err != nil {
		panic(err)
	}
	return r.At().Epoch
}

func TestWrittenAcrossEpochsInMemory(t *testing.T) {
	RunWrittenAcrossEpochs(t, func(context.Context) Reborn { return &restored{Memory: store.NewMemory(store.Config{})} }, isConflict)
}

func TestWrittenAcrossEpochsFedFromOutside(t *testing.T) {
	RunWrittenAcrossEpochs(t, func(context.Context) Reborn { return NewOutside() }, isConflict)
}

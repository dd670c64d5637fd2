package store_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/store/storetest"
)

var _ storetest.Store = (*store.Memory)(nil)

func TestMemoryKeepsTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Store {
		return store.NewMemory(store.Config{History: storetest.History, HistoryBytes: storetest.HistoryBytes})
	})
}

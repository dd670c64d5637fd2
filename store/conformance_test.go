package store_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/store/storetest"
)

var _ storetest.Store = (*store.Memory)(nil)

// It is not parallel: a rule is about memory, see storetest.Run.
func TestMemoryKeepsTheRules(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store {
		return store.NewMemory(store.Config{History: storetest.History, HistoryBytes: storetest.HistoryBytes})
	})
}

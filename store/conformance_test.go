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

var (
	_ storetest.Replica = (*store.Replica)(nil)
	_ storetest.Feed    = (*store.Feed)(nil)
)

func TestReplicaKeepsTheRules(t *testing.T) {
	t.Parallel()
	storetest.RunReplica(t, func(*testing.T) (storetest.Replica, storetest.Feed) {
		return store.NewReplica(store.Config{History: storetest.History, HistoryBytes: storetest.HistoryBytes})
	})
}

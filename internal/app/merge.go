package app

import (
	"context"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// mergeOrder is the order that sources are merged in.
type mergeOrder struct {
	mu    sync.Mutex
	order catalog.Order
	end   context.CancelFunc // of the order's term; nil before the first
}

// set puts another order in force, unless sources are in that order already, with the
// same rights. Those that are gone are no reason for another: their places stay empty.
func (m *mergeOrder) set(order catalog.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if within(order.Sources, m.order.Sources) && m.order.Among(order.Sources).SameRights(order) {
		return
	}
	m.order = order
	if m.end != nil {
		m.end()
	}
}

// renew ends the term, so that the store is read anew in the same order.
func (m *mergeOrder) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		m.end()
	}
}

// term returns the order in force, and a context that ends with it.
func (m *mergeOrder) term(ctx context.Context) (context.Context, catalog.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	term, end := context.WithCancel(ctx)
	m.end = end
	return term, m.order
}

package push

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Holdings bound the bytes that subscribers make an engine keep by asking for
// names, or by saying that they hold them. Names that a wildcard brings are not
// counted, for the engine has them in any case.
type Holdings struct {
	// Each is for the subscribers of one [Info].Budget; default 256 MiB, which is
	// some two million names.
	Each int64
	// Total is for all subscribers; default a third of the memory that the program
	// may use (GOMEMLIMIT), or 2 GiB if that is not limited.
	Total int64
}

func (h Holdings) withDefaults() Holdings {
	if h.Each == 0 {
		h.Each = 256 << 20
	}
	if h.Total == 0 {
		h.Total = min(debug.SetMemoryLimit(-1)/3, 2<<30) // asks, and sets nothing
	}
	return h
}

// ErrHoldings is returned for a request that asks for more than is left of a budget.
var ErrHoldings = errors.New("more names than there is room for")

// nameCost is what a name costs beside its bytes: a slot of the subscriber's map
// and one of the index, each less than half empty.
const nameCost = 96

// holdings is what was taken of the budgets.
type holdings struct {
	limits Holdings

	mu    sync.Mutex
	total int64
	by    map[string]int64
}

func newHoldings(limits Holdings) *holdings {
	return &holdings{limits: limits, by: map[string]int64{}}
}

// take takes bytes of a budget. A negative number gives them back.
func (h *holdings) take(budget string, bytes int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	each, total := h.by[budget]+bytes, h.total+bytes
	if bytes > 0 && budget != "" && each > h.limits.Each {
		return fmt.Errorf("%w: with these %q would hold %d bytes of %d", ErrHoldings, budget, each, h.limits.Each)
	}
	if bytes > 0 && total > h.limits.Total {
		return fmt.Errorf("%w: with these all clients would hold %d bytes of %d", ErrHoldings, total, h.limits.Total)
	}
	h.total = total
	if h.by[budget] = each; each == 0 {
		delete(h.by, budget)
	}
	return nil
}

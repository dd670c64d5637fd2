package push

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Holdings bound the memory that subscribers can make an engine use. They count the bytes
// of names that a client asks for or claims to hold, and of views that no other client has.
// Names that a wildcard brings are not counted, because the engine has them in any case.
type Holdings struct {
	// Each bounds the bytes for the subscribers of one [Info].Budget; default 256 MiB, some
	// two million names.
	Each int64
	// Total is the bound in bytes for all subscribers. The default is a third of the memory
	// that the program may use (GOMEMLIMIT), or 2 GiB if that is not limited.
	Total int64
	// Views bounds the distinct views of the unproven subscribers of one [Info].Budget;
	// default 500. They derive from the location and ports that the client declares.
	Views int
}

func (h Holdings) withDefaults() Holdings {
	if h.Each == 0 {
		h.Each = 256 << 20
	}
	if h.Total == 0 {
		h.Total = min(debug.SetMemoryLimit(-1)/3, 2<<30) // asks, and sets nothing
	}
	h.Views = cmp.Or(h.Views, 500)
	return h
}

// ErrViews is returned for a subscriber with a view that exceeds the budget.
var ErrViews = errors.New("more views than there is room for")

// ErrHoldings is returned for a request that asks for more than is left of a budget.
var ErrHoldings = errors.New("more names than there is room for")

// nameCost is the cost of a name beside its bytes: a slot of the subscriber's map and one
// of the index, each less than half empty.
const nameCost = 96

// holdings is the used part of the budgets.
type holdings struct {
	limits Holdings

	mu    sync.Mutex
	total int64
	by    map[string]int64
	views map[outlook]int            // number of subscribers of each
	says  map[string]map[outlook]int // likewise, by budget, of unproven subscribers
}

func newHoldings(limits Holdings) *holdings {
	return &holdings{limits: limits, by: map[string]int64{}, views: map[outlook]int{}, says: map[string]map[outlook]int{}}
}

// outlook is the part of a client's self-description with which it could invent views.
// Labels are not part of it: they choose among scopes, which come from registries.
type outlook struct {
	kind, namespace    string
	locality           model.Locality
	role, interception string
	outbound           world.Ports
	network            string
	node, cluster      string
}

func outlookOf(c world.Client) outlook {
	return outlook{c.Kind, c.Namespace, c.Locality, c.Proxy.Role, c.Proxy.Interception, c.Proxy.Outbound, c.Network, c.Node, c.Cluster}
}

// shared returns the part of the outlook that resources of many services depend on; only
// those resources take memory.
func (o outlook) shared() outlook {
	o.network, o.node, o.cluster = "", "", ""
	return o
}

// viewCost is the memory in bytes of a view that no other subscriber has: the lists of its
// routes, and its own listeners.
const viewCost = 32 << 10

// enter takes room for the view of a subscriber. Subscribers with the same outlook share
// it.
func (h *holdings) enter(o outlook, info Info) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	says := h.says[info.Budget]
	counted := !info.Proven && info.Budget != ""
	if counted && says[o] == 0 && len(says) >= h.limits.Views {
		return fmt.Errorf("%w: clients of %q that prove nothing have %d already, by their namespaces, localities, nodes and ports; "+
			"give clients certificates, or let fewer of them share an address", ErrViews, info.Budget, len(says))
	}
	shared := o.shared()
	if h.views[shared] == 0 {
		if h.total+viewCost > h.limits.Total {
			return fmt.Errorf("%w: with it all clients would take %d bytes of %d; give the process more memory", ErrViews, h.total+viewCost, h.limits.Total)
		}
		h.total += viewCost
	}
	h.views[shared]++
	if counted {
		if says == nil {
			says = map[outlook]int{}
			h.says[info.Budget] = says
		}
		says[o]++
	}
	return nil
}

// leave returns the room that enter took.
func (h *holdings) leave(o outlook, info Info) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shared := o.shared()
	if h.views[shared]--; h.views[shared] == 0 {
		delete(h.views, shared)
		h.total -= viewCost
	}
	says := h.says[info.Budget]
	if says[o] == 0 {
		return
	}
	if says[o]--; says[o] == 0 {
		delete(says, o)
	}
	if len(says) == 0 {
		delete(h.says, info.Budget)
	}
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

package catalog

import (
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/immutable"
)

// accounts counts the endpoints of a port under each service account, healthy or not. Each
// change updates the counts: TLS clients need the accounts with every look-up, and there
// are few accounts however many endpoints there are. A port without accounts has no counts.
type accounts struct {
	byName immutable.Map[string, int]
}

// Accounts yields the service accounts under which the endpoints run, each once and
// in order.
func (e *Endpoints) Accounts() iter.Seq[string] {
	return func(yield func(string) bool) {
		if e == nil || e.accounts == nil {
			return
		}
		for account := range e.accounts.byName.All() {
			if !yield(account) {
				return
			}
		}
	}
}

// accounting is a change of the counts in the making. It has no editor until there is an
// account.
type accounting struct {
	byName *immutable.Editor[string, int]
}

func (a *accounts) edit() accounting {
	if a == nil {
		return accounting{}
	}
	return accounting{a.byName.Edit()}
}

// finish returns nil if no endpoint has an account.
func (a *accounting) finish() *accounts {
	if a.byName == nil || a.byName.View().Len() == 0 {
		return nil
	}
	return &accounts{a.byName.Map()}
}

// replace counts one instance of an endpoint instead of another; either may be nil.
func (a *accounting) replace(before, after *Instance) {
	if before != after {
		a.count(after, +1)
		a.count(before, -1)
	}
}

func (a *accounting) count(instance *Instance, by int) {
	if instance == nil || instance.ServiceAccount == "" {
		return
	}
	if a.byName == nil {
		a.byName = immutable.New[string, int](strings.Compare).Edit()
	}
	account := instance.ServiceAccount
	if n, _ := a.byName.View().Get(account); n+by > 0 {
		a.byName.Set(account, n+by)
	} else {
		a.byName.Delete(account)
	}
}

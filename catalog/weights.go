package catalog

import (
	"cmp"
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// weights counts the weights of the endpoints of a port, healthy or not. Each change
// updates the counts, so that no reader has to walk all endpoints to compare their weights.
// Most services have no weights, and then no counts.
type weights struct {
	classes  immutable.Map[weightClass, int] // number of endpoints of each class
	weighted int                             // endpoints that weigh more than 1
	further  int                             // classes beyond the first of each locality
}

// weightClass is a weight in a locality.
type weightClass struct {
	model.Locality
	weight uint32
}

func (c weightClass) compare(o weightClass) int {
	return cmp.Or(
		strings.Compare(c.Region, o.Region), strings.Compare(c.Zone, o.Zone), strings.Compare(c.SubZone, o.SubZone),
		cmp.Compare(c.weight, o.weight),
	)
}

func (i *Instance) class() weightClass { return weightClass{i.Locality, max(i.Weight, 1)} }

// Uneven reports whether endpoints of one locality differ in their weights. Unhealthy
// endpoints count as well: decisions based on it should not change whenever an endpoint's
// health does.
func (e *Endpoints) Uneven() bool { return e != nil && e.weights != nil && e.weights.further > 0 }

// Weights yields the distinct weights in each locality, in order, healthy or not. It yields
// nothing if every endpoint weighs 1.
func (e *Endpoints) Weights() iter.Seq2[model.Locality, uint32] {
	return func(yield func(model.Locality, uint32) bool) {
		if e == nil || e.weights == nil {
			return
		}
		for class := range e.weights.classes.All() {
			if !yield(class.Locality, class.weight) {
				return
			}
		}
	}
}

// weighing is a change of weights in the making. Without an editor every endpoint weighs 1.
type weighing struct {
	classes           *immutable.Editor[weightClass, int]
	weighted, further int
}

func (w *weights) edit() weighing {
	if w == nil {
		return weighing{}
	}
	return weighing{w.classes.Edit(), w.weighted, w.further}
}

// finish returns nil if every endpoint weighs 1.
func (w *weighing) finish() *weights {
	if w.classes == nil {
		return nil
	}
	return &weights{w.classes.Map(), w.weighted, w.further}
}

// replace counts one instance of an endpoint instead of another; either may be nil. All are
// the endpoints after the change.
func (w *weighing) replace(before, after *Instance, all iter.Seq[Endpoint]) {
	switch {
	case before == after:
	case w.classes != nil:
		w.count(after, +1)
		w.count(before, -1)
	case after != nil && after.Weight > 1:
		w.classes = immutable.New[weightClass, int](weightClass.compare).Edit()
		for endpoint := range all {
			w.count(endpoint.Instance, +1)
		}
	}
	if w.weighted == 0 {
		*w = weighing{}
	}
}

func (w *weighing) count(instance *Instance, by int) {
	if instance == nil {
		return
	}
	class := instance.class()
	if class.weight > 1 {
		w.weighted += by
	}
	before, _ := w.classes.View().Get(class)
	if before+by > 0 {
		w.classes.Set(class, before+by)
	} else {
		w.classes.Delete(class)
	}
	if (before == 0 || before+by == 0) && w.hasOthers(class) {
		w.further += by
	}
}

// hasOthers reports whether there is another class in the same locality.
func (w *weighing) hasOthers(class weightClass) bool {
	for other := range w.classes.View().From(weightClass{class.Locality, 0}) {
		if other.Locality != class.Locality {
			return false
		}
		if other != class {
			return true
		}
	}
	return false
}

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

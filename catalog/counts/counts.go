// Package counts has the numbers, the weights and the service accounts of a port's endpoints. Each change of
// an endpoint updates the counts, so that no reader has to walk all endpoints.
package counts

import (
	"cmp"
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Weights counts the weights of the endpoints of a port, healthy or not. Most services have no
// weights, and then no counts: a nil pointer says that every endpoint weighs 1. It is immutable.
type Weights struct {
	classes  immutable.Map[class, int] // number of endpoints of each class
	weighted int                       // endpoints that weigh more than 1
	further  int                       // classes beyond the first of each locality
}

// class is a weight in a locality.
type class struct {
	model.Locality
	weight uint32
}

func (c class) compare(o class) int {
	return cmp.Or(
		strings.Compare(c.Region, o.Region), strings.Compare(c.Zone, o.Zone), strings.Compare(c.SubZone, o.SubZone),
		cmp.Compare(c.weight, o.weight),
	)
}

// Uneven reports whether endpoints of one locality differ in their weights. Unhealthy endpoints
// count as well: decisions based on it should not change whenever an endpoint's health does.
func (w *Weights) Uneven() bool { return w != nil && w.further > 0 }

// All yields the distinct weights in each locality, in order, healthy or not. It yields nothing if
// every endpoint weighs 1.
func (w *Weights) All() iter.Seq2[model.Locality, uint32] {
	return func(yield func(model.Locality, uint32) bool) {
		if w == nil {
			return
		}
		for c := range w.classes.All() {
			if !yield(c.Locality, c.weight) {
				return
			}
		}
	}
}

// Weighing is a change of weights in the making. Without an editor every endpoint weighs 1.
type Weighing struct {
	classes           *immutable.Editor[class, int]
	weighted, further int
}

// Edit begins a change.
func (w *Weights) Edit() Weighing {
	if w == nil {
		return Weighing{}
	}
	return Weighing{w.classes.Edit(), w.weighted, w.further}
}

// Finish returns the weights after the change; nil if every endpoint weighs 1.
func (w *Weighing) Finish() *Weights {
	if w.classes == nil {
		return nil
	}
	return &Weights{w.classes.Map(), w.weighted, w.further}
}

// Count counts an endpoint that comes or goes. It returns false if it cannot, because none was counted while
// every endpoint weighed 1: then all have to be counted.
func (w *Weighing) Count(e *model.Endpoint, by int) bool {
	if w.classes == nil {
		return by < 0 || e.Weight <= 1
	}
	if w.count(e, by); w.weighted == 0 {
		*w = Weighing{}
	}
	return true
}

// CountAll counts endpoints anew.
func (w *Weighing) CountAll(all iter.Seq[*model.Endpoint]) {
	*w = Weighing{classes: immutable.New[class, int](class.compare).Edit()}
	for e := range all {
		w.count(e, +1)
	}
}

func (w *Weighing) count(e *model.Endpoint, by int) {
	c := class{e.Locality, max(e.Weight, 1)}
	if c.weight > 1 {
		w.weighted += by
	}
	before, _ := w.classes.View().Get(c)
	if before+by > 0 {
		w.classes.Set(c, before+by)
	} else {
		w.classes.Delete(c)
	}
	if (before == 0 || before+by == 0) && w.hasOthers(c) {
		w.further += by
	}
}

// hasOthers reports whether there is another class in the same locality.
func (w *Weighing) hasOthers(c class) bool {
	for other := range w.classes.View().From(class{c.Locality, 0}) {
		if other.Locality != c.Locality {
			return false
		}
		if other != c {
			return true
		}
	}
	return false
}

// Accounts counts the endpoints of a port under each service account, healthy or not: TLS clients
// need the accounts with every look-up, and there are few accounts however many endpoints there are.
// A port without accounts has a nil pointer. It is immutable.
type Accounts struct {
	byName immutable.Map[string, int]
}

// All yields the service accounts, each once and in order.
func (a *Accounts) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		if a == nil {
			return
		}
		for account := range a.byName.All() {
			if !yield(account) {
				return
			}
		}
	}
}

// Accounting is a change of the counts in the making. It has no editor until there is an account.
type Accounting struct {
	byName *immutable.Editor[string, int]
}

// Edit begins a change.
func (a *Accounts) Edit() Accounting {
	if a == nil {
		return Accounting{}
	}
	return Accounting{a.byName.Edit()}
}

// Finish returns the counts after the change; nil if no endpoint has an account.
func (a *Accounting) Finish() *Accounts {
	if a.byName == nil || a.byName.View().Len() == 0 {
		return nil
	}
	return &Accounts{a.byName.Map()}
}

// Count counts endpoints that come or go.
func (a *Accounting) Count(e *model.Endpoint, by int) {
	if e.ServiceAccount == "" {
		return
	}
	if a.byName == nil {
		a.byName = immutable.New[string, int](strings.Compare).Edit()
	}
	account := e.ServiceAccount
	if n, _ := a.byName.View().Get(account); n+by > 0 {
		a.byName.Set(account, n+by)
	} else {
		a.byName.Delete(account)
	}
}

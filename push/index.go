package push

import (
	"iter"
	"maps"
	"sync"
)

// index tells who subscribed to a name, grouped by view: whether a change
// concerns a view is asked once, however many subscribers share it.
type index struct {
	mu    sync.RWMutex
	named map[resourceName]byView
	wild  map[Type]map[string]byView // by namespace of the view
}

type resourceName struct {
	Type
	name string
}

type byView map[View]map[*Subscriber]struct{}

func newIndex() *index {
	return &index{named: map[resourceName]byView{}, wild: map[Type]map[string]byView{}}
}

func (v byView) add(s *Subscriber) {
	if v[s.view] == nil {
		v[s.view] = map[*Subscriber]struct{}{}
	}
	v[s.view][s] = struct{}{}
}

func (v byView) remove(s *Subscriber) {
	delete(v[s.view], s)
	if len(v[s.view]) == 0 {
		delete(v, s.view)
	}
}

func (x *index) add(s *Subscriber, t Type, names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		key := resourceName{t, name}
		if x.named[key] == nil {
			x.named[key] = byView{}
		}
		x.named[key].add(s)
	}
}

func (x *index) remove(s *Subscriber, t Type, names iter.Seq[string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range names {
		key := resourceName{t, name}
		x.named[key].remove(s)
		if len(x.named[key]) == 0 {
			delete(x.named, key)
		}
	}
}

// setWildcard enters or removes a subscriber to everything of a type.
func (x *index) setWildcard(s *Subscriber, t Type, on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	namespace := s.view.Namespace
	switch {
	case on:
		if x.wild[t] == nil {
			x.wild[t] = map[string]byView{}
		}
		if x.wild[t][namespace] == nil {
			x.wild[t][namespace] = byView{}
		}
		x.wild[t][namespace].add(s)
	case x.wild[t][namespace] != nil:
		x.wild[t][namespace].remove(s)
		if len(x.wild[t][namespace]) == 0 {
			delete(x.wild[t], namespace)
		}
	}
}

// concerned calls mark for every subscriber of a changed resource whose view
// is affected by the change.
func (x *index) concerned(c Changed, affected func(View) bool, mark func(*Subscriber)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	asked := map[View]bool{}
	visit := func(views byView) {
		for view, subscribers := range views {
			yes, known := asked[view]
			if !known {
				yes = affected(view)
				asked[view] = yes
			}
			if !yes {
				continue
			}
			for s := range subscribers {
				mark(s)
			}
		}
	}
	visit(x.named[resourceName{c.Type, c.Name}])
	wild := x.wild[c.Type]
	if len(wild) == 0 {
		return
	}
	namespaces := maps.Keys(wild)
	if c.Namespaces != nil {
		namespaces = func(yield func(string) bool) {
			for _, n := range c.Namespaces {
				if !yield(n) {
					return
				}
			}
		}
	}
	for namespace := range namespaces {
		visit(wild[namespace])
	}
}

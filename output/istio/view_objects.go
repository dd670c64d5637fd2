package istio

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// objects are our objects in the API server, as they were observed last.
type objects struct {
	stores map[Kind]cache.Indexer
}

const byKey = "key"

// kept is an observed object as an informer keeps it.
type kept struct {
	metav1.ObjectMeta
	Observed
}

// shorten keeps the parts of an object that show whether it is in order.
func shorten(kind Kind, o any) any {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o
	}
	short := observedOf(kind, u)
	return &kept{Observed: short, ObjectMeta: metav1.ObjectMeta{
		Name: short.Name, Namespace: short.Namespace, UID: u.GetUID(), ResourceVersion: short.Version,
	}}
}

// index returns the indexers of a store.
func index() cache.Indexers { return cache.Indexers{byKey: indexByKey} }

func indexByKey(o any) ([]string, error) {
	k, ok := o.(*kept)
	if !ok {
		return nil, nil
	}
	return []string{k.key().String()}, nil
}

// object returns an own object.
func (s *objects) object(r Ref) (Observed, bool) {
	o, ok, err := s.stores[r.Kind].GetByKey(r.Namespace + "/" + r.Name)
	if err != nil || !ok {
		return Observed{}, false
	}
	k, ok := o.(*kept)
	if !ok {
		return Observed{}, false
	}
	return k.Observed, true
}

// of returns the own objects of a key, in order. There may be thousands, so pointers are
// sorted instead of objects.
func (s *objects) of(key Key) []Observed {
	var all []*kept
	for _, kind := range key.kinds() { // in the order of the kinds
		found, err := s.stores[kind].ByIndex(byKey, key.String())
		if err != nil {
			continue
		}
		first := len(all)
		for _, o := range found {
			if k, ok := o.(*kept); ok {
				all = append(all, k)
			}
		}
		slices.SortFunc(all[first:], func(a, b *kept) int { return strings.Compare(a.Name, b.Name) })
	}
	list := make([]Observed, len(all))
	for i, k := range all {
		list[i] = k.Observed
	}
	return list
}

// keys returns every key that has an own object.
func (s *objects) keys() map[Key]struct{} {
	keys := map[Key]struct{}{}
	for _, store := range s.stores {
		for _, o := range store.List() {
			if k, ok := o.(*kept); ok {
				keys[k.key()] = struct{}{}
			}
		}
	}
	return keys
}

// count returns the number of own objects.
func (s *objects) count() int {
	n := 0
	for _, store := range s.stores {
		n += len(store.ListKeys())
	}
	return n
}

// exists returns a function that reports whether a name of a ServiceEntry is in use in the
// namespace of a key.
func (s *objects) exists(key Key) func(name string) bool {
	return func(name string) bool {
		_, ok := s.object(Ref{ServiceEntry, key.Namespace, name})
		return ok
	}
}

// Package observed stores the short form of our objects in an API server, as they were
// observed last. It does no I/O, and any goroutine may read it.
package observed

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Objects are our objects in the API server, as they were observed last.
type Objects struct {
	Stores map[object.Kind]cache.Indexer // with [Index]
}

const byKey = "key"

// kept is an observed object as an informer keeps it.
type kept struct {
	metav1.ObjectMeta
	object.Observed
}

// other is a rule of another owner as an informer keeps it.
type other struct {
	metav1.ObjectMeta
	object.OtherRule
}

// Shorten keeps the parts of an object that show whether it is in order, if it has our marks.
func Shorten(kind object.Kind, marks map[string]string, o any) any {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o
	}
	meta := metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}
	if kind == object.DestinationRule && !object.Includes(u.GetLabels(), marks) {
		return &other{meta, object.ObserveOther(u)}
	}
	return &kept{meta, object.Observe(kind, u)}
}

// Index returns the indexers of a store.
func Index() cache.Indexers { return cache.Indexers{byKey: indexByKey} }

func indexByKey(o any) ([]string, error) {
	k, ok := o.(*kept)
	if !ok {
		return nil, nil
	}
	return []string{k.Key().String()}, nil
}

// Object returns an own object.
func (s *Objects) Object(r object.Ref) (object.Observed, bool) {
	o, ok, err := s.Stores[r.Kind].GetByKey(r.Namespace + "/" + r.Name)
	if err != nil || !ok {
		return object.Observed{}, false
	}
	k, ok := o.(*kept)
	if !ok {
		return object.Observed{}, false
	}
	return k.Observed, true
}

// Of returns the own objects of a key, in order. There may be thousands, so pointers are
// sorted instead of objects.
func (s *Objects) Of(key object.Key) []object.Observed {
	var all []*kept
	for _, kind := range key.Kinds() { // in the order of the kinds
		found, err := s.Stores[kind].ByIndex(byKey, key.String())
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
	list := make([]object.Observed, len(all))
	for i, k := range all {
		list[i] = k.Observed
	}
	return list
}

// Keys returns every key that has an own object.
func (s *Objects) Keys() map[object.Key]struct{} {
	keys := map[object.Key]struct{}{}
	for _, store := range s.Stores {
		for _, o := range store.List() {
			if k, ok := o.(*kept); ok {
				keys[k.Key()] = struct{}{}
			}
		}
	}
	return keys
}

// Count returns the number of own objects.
func (s *Objects) Count() int {
	n := 0
	for kind, store := range s.Stores {
		if kind != object.DestinationRule {
			n += len(store.ListKeys())
			continue
		}
		for _, o := range store.List() { // other owners have some, too
			if From(o) != nil {
				n++
			}
		}
	}
	return n
}

// OtherRules returns the DestinationRules of other owners. They are known only if the kind is
// written.
func (s *Objects) OtherRules() (list []object.OtherRule) {
	store := s.Stores[object.DestinationRule]
	if store == nil {
		return nil
	}
	for _, o := range store.List() {
		if k, ok := o.(*other); ok {
			list = append(list, k.OtherRule)
		}
	}
	return list
}

// Exists returns a function that reports whether a name of a ServiceEntry is in use in the
// namespace of a key.
func (s *Objects) Exists(key object.Key) func(name string) bool {
	return func(name string) bool {
		_, ok := s.Object(object.Ref{Kind: object.ServiceEntry, Namespace: key.Namespace, Name: name})
		return ok
	}
}

// OtherFrom returns the rule of another owner in an entry of a store; nil if there is none.
func OtherFrom(o any) *object.OtherRule {
	if k, ok := o.(*other); ok {
		return &k.OtherRule
	}
	return nil
}

// From returns the own object in an entry of a store; nil if there is none.
func From(o any) *object.Observed {
	if k, ok := o.(*kept); ok {
		return &k.Observed
	}
	return nil
}

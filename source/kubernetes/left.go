package kubernetes

import (
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// leftOut has the names of objects that are left out, by resource: EndpointSlices
// with names instead of addresses, and objects that an Isthmus wrote.
type leftOut map[string]map[convert.Name]struct{}

// set stores whether an object is left out. It reports whether that is new.
func (l leftOut) set(resource string, name convert.Name, is bool) bool {
	if _, was := l[resource][name]; was == is {
		return false
	}
	if !is {
		delete(l[resource], name)
		return true
	}
	if l[resource] == nil {
		l[resource] = map[convert.Name]struct{}{}
	}
	l[resource][name] = struct{}{}
	return true
}

// counts returns the number of left-out objects of each kind.
func (l leftOut) counts() map[string]int {
	all := map[string]int{}
	for resource, names := range l {
		if len(names) > 0 {
			all[kindOf(resource)] = len(names)
		}
	}
	return all
}

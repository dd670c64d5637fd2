package kubernetes

// part is a unit of listing: a kind, or its objects in one namespace.
type part struct{ resource, namespace string }

// parts are the parts that have not been listed.
type parts map[part]bool

func partsOf(kinds []kind) parts {
	all := make(parts, len(kinds))
	for _, k := range kinds {
		all[k.part()] = true
	}
	return all
}

// of returns the parts of a kind.
func (p parts) of(resource string) parts {
	some := parts{}
	for one := range p {
		if one.resource == resource {
			some[one] = true
		}
	}
	return some
}

// has reports whether an object of a namespace is in one of them.
func (p parts) has(resource, namespace string) bool {
	return p[part{resource, ""}] || p[part{resource, namespace}]
}

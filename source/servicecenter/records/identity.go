package records

import (
	"cmp"
	"strings"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Identity identifies one service of the mesh, and is the data of templates. The
// version is empty unless a template uses it: else all versions are one service.
type Identity struct {
	Project, Environment, App, Service, Version string
}

// ParseIdentity parses the result of [Identity.Place].
func ParseIdentity(place string) (Identity, bool) {
	parts := strings.Split(place, "/")
	switch len(parts) {
	case 4:
		return Identity{parts[0], parts[1], parts[2], parts[3], ""}, true
	case 5:
		return Identity{parts[0], parts[1], parts[2], parts[3], parts[4]}, true
	}
	return Identity{}, false
}

// Key returns the key that finds the service.
func (i Identity) Key() registry.Key {
	return registry.Key{Environment: i.Environment, App: i.App, Service: i.Service}
}

// Place returns the service's place in the registry, as records show it.
func (i Identity) Place() string {
	parts := []string{i.Project, i.Environment, i.App, i.Service}
	if i.Version != "" {
		parts = append(parts, i.Version)
	}
	return strings.Join(parts, "/")
}

// Object names the service for people.
func (i Identity) Object() string { return "service " + i.Place() }

// Compare orders services by environment, app, name and version.
func (i Identity) Compare(o Identity) int {
	return cmp.Or(i.Key().Compare(o.Key()), cmp.Compare(i.Version, o.Version))
}

// order orders services that want the same name: first by the configured order of
// environments, then by the order of apps, then by name.
type order struct{ environments, apps map[string]int }

func newOrder(environments, apps []string) order {
	return order{positions(environments), positions(apps)}
}

func positions(list []string) map[string]int {
	at := make(map[string]int, len(list))
	for i, item := range list {
		if _, twice := at[item]; !twice {
			at[item] = i
		}
	}
	return at
}

func (r order) compare(a, b Identity) int {
	return cmp.Or(
		cmp.Compare(r.environments[a.Environment], r.environments[b.Environment]),
		cmp.Compare(r.apps[a.App], r.apps[b.App]),
		a.Compare(b),
	)
}

// wants reports whether a key is selected for mirroring.
func (r order) wants(k registry.Key) bool {
	return among(r.environments, k.Environment) && among(r.apps, k.App)
}

func among(wanted map[string]int, name string) bool {
	_, ok := wanted[name]
	return ok || len(wanted) == 0
}

package servicecenter

import (
	"cmp"
	"strings"
)

// Key is the subject of a find: all versions of a service.
type Key struct {
	Environment, App, Service string
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Environment, o.Environment), cmp.Compare(k.App, o.App), cmp.Compare(k.Service, o.Service))
}

// Identity identifies one service of the mesh, and is the data of templates. The
// version is empty unless a template uses it: else all versions are one service.
type Identity struct {
	Project, Environment, App, Service, Version string
}

func (i Identity) key() Key { return Key{i.Environment, i.App, i.Service} }

// place returns the service's place in the registry, as records show it.
func (i Identity) place() string {
	parts := []string{i.Project, i.Environment, i.App, i.Service}
	if i.Version != "" {
		parts = append(parts, i.Version)
	}
	return strings.Join(parts, "/")
}

// identityOf parses the result of place.
func identityOf(place string) (Identity, bool) {
	parts := strings.Split(place, "/")
	switch len(parts) {
	case 4:
		return Identity{parts[0], parts[1], parts[2], parts[3], ""}, true
	case 5:
		return Identity{parts[0], parts[1], parts[2], parts[3], parts[4]}, true
	}
	return Identity{}, false
}

// object names the service for people.
func (i Identity) object() string { return "service " + i.place() }

// order orders services that want the same name: first by the configured order of
// environments, then by the order of apps, then by name.
type order struct{ environments, apps map[string]int }

func newOrder(c Config) order {
	return order{positions(c.Environments), positions(c.Apps)}
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
		a.key().compare(b.key()),
		cmp.Compare(a.Version, b.Version),
	)
}

// wants reports whether a key is selected for mirroring.
func (r order) wants(k Key) bool {
	return among(r.environments, k.Environment) && among(r.apps, k.App)
}

func among(wanted map[string]int, name string) bool {
	_, ok := wanted[name]
	return ok || len(wanted) == 0
}

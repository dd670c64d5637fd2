package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/sanitize"
)

// Name is the name of a service in the mesh.
type Name struct{ Namespace, Host string }

// String returns the name as exports and scopes write it.
func (n Name) String() string { return n.Namespace + "/" + n.Host }

// Naming assigns names to services. Templates are rendered once for each service.
type Naming struct {
	rules    Rules
	rendered map[Identity]rendering
}

// NewNaming returns a naming by the templates of the rules.
func NewNaming(r Rules) *Naming { return &Naming{r, map[Identity]rendering{}} }

// rendering is the result of the templates for a service, before sanitizing.
type rendering struct {
	host, namespace string
	err             error
}

// Names are the names of all services, and reasons for missing ones.
type Names struct {
	Of       map[Identity]Name
	Rejected map[Identity]string
}

// Assign names services, the same way whatever their order. If the templates render
// the same for two services, the later one gets no name: two services of the registry
// are never mixed. If only sanitizing has made two names equal, each sanitized name
// gets a hash of its original.
func (n *Naming) Assign(services []Identity) Names {
	all := Names{map[Identity]Name{}, map[Identity]string{}}
	n.forget(services)
	texts := map[rendering][]Identity{} // by rendering, before sanitizing
	for _, i := range services {
		r := n.render(i)
		if r.err != nil {
			all.Rejected[i] = fmt.Sprintf("its name cannot be rendered: %v; correct the template, or rename the service", r.err)
			continue
		}
		texts[r] = append(texts[r], i)
	}
	taken := map[Name]Identity{}
	for _, group := range n.byPrecedence(texts) {
		n.settle(group, taken, &all)
	}
	return all
}

func (n *Naming) render(i Identity) rendering {
	if r, ok := n.rendered[i]; ok {
		return r
	}
	var r rendering
	r.host, r.err = render(n.rules.host, i)
	if r.err == nil {
		r.namespace, r.err = render(n.rules.namespace, i)
	}
	n.rendered[i] = r
	return r
}

// forget drops renderings of services that are gone.
func (n *Naming) forget(services []Identity) {
	if len(n.rendered) < 2*len(services)+16 {
		return
	}
	kept := make(map[Identity]rendering, len(services))
	for _, i := range services {
		if r, ok := n.rendered[i]; ok {
			kept[i] = r
		}
	}
	n.rendered = kept
}

// conflict has the services with one rendering, best first, and the name they want.
type conflict struct {
	services []Identity
	name     Name
}

// byPrecedence decides which name each group wants, and orders the groups.
func (n *Naming) byPrecedence(texts map[rendering][]Identity) []conflict {
	namespaces, hosts := map[string]map[string]bool{}, map[Name]map[string]bool{}
	for r := range texts {
		add(namespaces, sanitize.Namespace(r.namespace), r.namespace)
	}
	namespaceOf := func(r rendering) string {
		sanitized := sanitize.Namespace(r.namespace)
		if len(namespaces[sanitized]) > 1 && sanitized != r.namespace {
			return sanitize.DistinctNamespace(sanitized, r.namespace)
		}
		return sanitized
	}
	for r := range texts {
		add(hosts, Name{namespaceOf(r), sanitize.Host(r.host)}, r.host)
	}
	conflicts := make([]conflict, 0, len(texts))
	for r, services := range texts {
		slices.SortFunc(services, n.rules.order.compare)
		wanted := Name{namespaceOf(r), sanitize.Host(r.host)}
		if len(hosts[wanted]) > 1 && wanted.Host != r.host {
			wanted.Host = sanitize.DistinctHost(wanted.Host, r.host)
		}
		conflicts = append(conflicts, conflict{services, wanted})
	}
	slices.SortFunc(conflicts, func(a, b conflict) int { return n.rules.order.compare(a.services[0], b.services[0]) })
	return conflicts
}

func add[K comparable](sets map[K]map[string]bool, key K, member string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][member] = true
}

// settle gives the first service its name, and rejects the others with a reason.
func (n *Naming) settle(c conflict, taken map[Name]Identity, all *Names) {
	holder, ok := taken[c.name]
	if !ok {
		holder = c.services[0]
		taken[c.name], all.Of[holder] = holder, c.name
	}
	for _, i := range c.services {
		if i != holder {
			all.Rejected[i] = fmt.Sprintf("%s is the name of %s already, which comes first: %s",
				c.name, holder.Place(), parting(i, holder))
		}
	}
}

// parting returns advice for a template that would distinguish two services.
func parting(a, b Identity) string {
	var fields []string
	for _, f := range []struct{ field, a, b string }{
		{"Environment", a.Environment, b.Environment},
		{"App", a.App, b.App},
		{"Service", a.Service, b.Service},
		{"Version", a.Version, b.Version},
	} {
		if f.a != f.b {
			fields = append(fields, f.field)
		}
	}
	var template strings.Builder
	template.WriteString("{{.Service}}")
	for _, field := range fields {
		if field != "Service" {
			template.WriteString(".{{." + field + "}}")
		}
	}
	return fmt.Sprintf("put %s into the host or namespace template, such as host: %q", strings.Join(fields, " and "), template.String())
}

// Move is a name that has passed from one service to another, with the traffic of its
// clients.
type Move struct {
	Name     Name
	From, To Identity
}

// Moves returns the names that another service has now, in order.
func Moves(was, now Names) []Move {
	holders := make(map[Name]Identity, len(was.Of))
	for i, n := range was.Of {
		holders[n] = i
	}
	var all []Move
	for to, n := range now.Of {
		if from, ok := holders[n]; ok && from != to {
			all = append(all, Move{n, from, to})
		}
	}
	slices.SortFunc(all, func(a, b Move) int { return a.To.Compare(b.To) })
	return all
}

package servicecenter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// name is the name of a service in the mesh.
type name struct{ namespace, host string }

func (n name) String() string { return n.namespace + "/" + n.host }

// naming assigns names to services. Templates are rendered once for each service.
type naming struct {
	host, namespace *template.Template
	order           order
	rendered        map[Identity]rendering
}

// rendering is the result of the templates for a service, before sanitizing.
type rendering struct {
	host, namespace string
	err             error
}

func newNaming(c Config) (*naming, error) {
	host, err := parseTemplate("host", c.Host)
	if err != nil {
		return nil, err
	}
	namespace, err := parseTemplate("namespace", c.Namespace)
	if err != nil {
		return nil, err
	}
	return &naming{host, namespace, newOrder(c), map[Identity]rendering{}}, nil
}

// sample returns an identity for trying templates.
func sample() Identity { return Identity{"default", "production", "shop", "cart", "1.0.0"} }

// parseTemplate parses the template of a field, and tries it.
func parseTemplate(field, text string) (*template.Template, error) {
	t, err := template.New(field).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a template: %w; write such as {{.Service}}", field, text, err)
	}
	if out, err := render(t, sample()); err != nil {
		return nil, fmt.Errorf("%s: %q cannot be rendered: %w; the fields are .Service, .App, .Environment, .Version, .Project", field, text, err)
	} else if strings.TrimSpace(out) == "" {
		return nil, fmt.Errorf("%s: %q renders nothing; write such as {{.Service}}", field, text)
	}
	return t, nil
}

func render(t *template.Template, i Identity) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, i); err != nil {
		if exec, ok := errors.AsType[template.ExecError](err); ok {
			text := exec.Err.Error() // begins with the position in the template, though it is one line
			text = text[strings.LastIndex(text, ": ")+1:]
			err = errors.New(strings.TrimSpace(strings.TrimSuffix(text, " in type servicecenter.Identity")))
		}
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// perVersion reports whether versions become services of their own.
func perVersion(c Config) bool {
	return strings.Contains(c.Host+c.Namespace, ".Version")
}

// names are the names of all services, and reasons for missing ones.
type names struct {
	of       map[Identity]name
	rejected map[Identity]string
}

// assign names services, the same way whatever their order. If the templates render
// the same for two services, the later one gets no name: two services of the registry
// are never mixed. If only sanitizing has made two names equal, each sanitized name
// gets a hash of its original.
func (n *naming) assign(services []Identity) names {
	all := names{map[Identity]name{}, map[Identity]string{}}
	n.forget(services)
	texts := map[rendering][]Identity{} // by rendering, before sanitizing
	for _, i := range services {
		r := n.render(i)
		if r.err != nil {
			all.rejected[i] = fmt.Sprintf("its name cannot be rendered: %v; correct the template, or rename the service", r.err)
			continue
		}
		texts[r] = append(texts[r], i)
	}
	taken := map[name]Identity{}
	for _, group := range n.byPrecedence(texts) {
		n.settle(group, taken, &all)
	}
	return all
}

func (n *naming) render(i Identity) rendering {
	if r, ok := n.rendered[i]; ok {
		return r
	}
	var r rendering
	r.host, r.err = render(n.host, i)
	if r.err == nil {
		r.namespace, r.err = render(n.namespace, i)
	}
	n.rendered[i] = r
	return r
}

// forget drops renderings of services that are gone.
func (n *naming) forget(services []Identity) {
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

// contest has the services with one rendering, best first, and the name they want.
type contest struct {
	services []Identity
	name     name
}

// byPrecedence decides which name each group wants, and orders the groups.
func (n *naming) byPrecedence(texts map[rendering][]Identity) []contest {
	namespaces, hosts := map[string]map[string]bool{}, map[name]map[string]bool{}
	for r := range texts {
		add(namespaces, sanitizeNamespace(r.namespace), r.namespace)
	}
	namespaceOf := func(r rendering) string {
		sanitized := sanitizeNamespace(r.namespace)
		if len(namespaces[sanitized]) > 1 && sanitized != r.namespace {
			return partNamespace(sanitized, r.namespace)
		}
		return sanitized
	}
	for r := range texts {
		add(hosts, name{namespaceOf(r), sanitizeHost(r.host)}, r.host)
	}
	contests := make([]contest, 0, len(texts))
	for r, services := range texts {
		slices.SortFunc(services, n.order.compare)
		wanted := name{namespaceOf(r), sanitizeHost(r.host)}
		if len(hosts[wanted]) > 1 && wanted.host != r.host {
			wanted.host = partHost(wanted.host, r.host)
		}
		contests = append(contests, contest{services, wanted})
	}
	slices.SortFunc(contests, func(a, b contest) int { return n.order.compare(a.services[0], b.services[0]) })
	return contests
}

func add[K comparable](sets map[K]map[string]bool, key K, member string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][member] = true
}

// settle gives the first service its name, and rejects the others with a reason.
func (n *naming) settle(c contest, taken map[name]Identity, all *names) {
	holder, ok := taken[c.name]
	if !ok {
		holder = c.services[0]
		taken[c.name], all.of[holder] = holder, c.name
	}
	for _, i := range c.services {
		if i != holder {
			all.rejected[i] = fmt.Sprintf("%s is the name of %s already, which comes first: %s",
				c.name, holder.place(), parting(i, holder))
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

// move is a name that has passed from one service to another, with the traffic of its
// clients.
type move struct {
	name     name
	from, to Identity
}

// moves returns the names that another service has now, in order.
func moves(was, now names) []move {
	holders := make(map[name]Identity, len(was.of))
	for i, n := range was.of {
		holders[n] = i
	}
	var all []move
	for to, n := range now.of {
		if from, ok := holders[n]; ok && from != to {
			all = append(all, move{n, from, to})
		}
	}
	slices.SortFunc(all, func(a, b move) int { return order{}.compare(a.to, b.to) })
	return all
}

// sorted returns the services that have a name or were rejected one, in order.
func (n names) sorted() []Identity {
	all := maps.Clone(n.rejected)
	for i := range n.of {
		all[i] = ""
	}
	return slices.SortedFunc(maps.Keys(all), order{}.compare)
}

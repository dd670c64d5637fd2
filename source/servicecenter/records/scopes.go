package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/sanitize"
)

// Scopes limits each consumer to its providers. The values of the selector and the
// namespace are templates of the consumer's [Identity].
type Scopes struct {
	WorkloadSelector map[string]string `json:"workloadSelector"`
	Namespace        string            `json:"namespace"`
	// Hosts are further services that every consumer may see, each "namespace/host".
	Hosts []string `json:"hosts"`
}

// Scoping makes scopes of consumers; nil makes none.
type Scoping struct {
	selector   map[string]*template.Template
	namespace  *template.Template
	hosts      []string
	perVersion bool // a template uses the version
}

// Identify returns a consumer as scopes distinguish it: each version by itself if a
// template uses the version, whether or not versions are services of their own.
func (s *Scoping) Identify(i Identity, version string) Identity {
	if s != nil && s.perVersion {
		i.Version = version
	}
	return i
}

// NewScoping parses the templates; nil makes no scopes.
func NewScoping(s *Scopes) (*Scoping, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // nothing is wrong with none
	}
	out := &Scoping{
		selector: map[string]*template.Template{}, hosts: slices.Clone(s.Hosts), perVersion: strings.Contains(s.Namespace, ".Version"),
	}
	var errs []error
	template := func(field, text string) *template.Template {
		parsed, err := parseTemplate(field, text)
		errs = append(errs, err)
		return parsed
	}
	if s.Namespace == "" {
		errs = append(errs, errors.New("scopes.namespace: missing; name where the consumers' workloads live, such as shop or {{.App}}"))
	} else {
		out.namespace = template("scopes.namespace", s.Namespace)
	}
	if len(s.WorkloadSelector) == 0 {
		errs = append(errs, errors.New(`scopes.workloadSelector: missing; give the labels of a consumer's workloads, such as {app: "{{.Service}}"}`))
	}
	for _, key := range slices.Sorted(maps.Keys(s.WorkloadSelector)) {
		field := "scopes.workloadSelector." + key
		if !isLabelKey(key) {
			errs = append(errs, fmt.Errorf("%s: is not a label key, such as app", field))
		}
		out.selector[key] = template(field, s.WorkloadSelector[key])
		out.perVersion = out.perVersion || strings.Contains(s.WorkloadSelector[key], ".Version")
	}
	for i, host := range s.Hosts {
		if err := checkScopeHost(host); err != nil {
			errs = append(errs, fmt.Errorf("scopes.hosts[%d]: %q %w", i, host, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// checkScopeHost returns the fault of a "namespace/host", by the rules of a Sidecar's
// egress.
func checkScopeHost(text string) error {
	namespace, host, ok := strings.Cut(text, "/")
	switch {
	case !ok || namespace == "" || host == "":
		return errors.New("is not namespace/host, such as istio-system/*")
	case namespace != "*" && namespace != "." && namespace != "~" && len(content.IsDNS1123Label(namespace)) > 0:
		return errors.New("does not begin with a namespace; write one, \".\" for the workload's own, or \"*\" for all")
	case host == "*":
		return nil
	}
	bare := strings.TrimPrefix(host, "*.")
	if !strings.Contains(host, ".") || strings.Contains(bare, "*") || sanitize.Host(bare) != bare {
		return errors.New("has no host that a Sidecar can name; write a full name such as cart.mesh, or *.mesh for all below it, or * for all")
	}
	return nil
}

// nothing is the egress host of a scope without any host.
const nothing = "~/*"

// scope lists the hosts that one set of workloads may see.
type scope struct {
	key    model.Key
	labels map[string]string
	hosts  map[string]bool
}

// Objects returns the scopes of all consumers. Consumers with the same workloads
// share the scope of the first of them. A notice names each consumer without a scope.
func (s *Scoping) Objects(consumers map[Identity]Name, providers Uses) ([]model.Object, []model.Notice) {
	scopes := map[string]*scope{} // by namespace and selector
	taken := map[model.Key]bool{}
	var without []Identity
	var notices []model.Notice
	for _, consumer := range slices.SortedFunc(maps.Keys(consumers), Identity.Compare) {
		if len(providers[consumer]) == 0 {
			without = append(without, consumer)
			continue
		}
		made, err := s.scope(consumer, consumers[consumer])
		if err != nil {
			notices = append(notices, s.notice(consumer, "", err.Error()))
			continue
		}
		id := made.id()
		if scopes[id] == nil {
			made.rename(consumer, taken)
			scopes[id] = made
		}
		for p := range providers[consumer] {
			scopes[id].hosts[p.String()] = true
		}
	}
	for _, consumer := range without {
		made, err := s.scope(consumer, consumers[consumer])
		switch {
		case err != nil:
			notices = append(notices, s.notice(consumer, "", err.Error()))
		case scopes[made.id()] == nil: // else the scope of another consumer selects its workloads
			notices = append(notices, s.notice(consumer, made.where(), "the registry knows of no service that it uses"))
		}
	}
	objects := make([]model.Object, 0, len(scopes))
	for _, one := range scopes {
		objects = append(objects, one.object())
	}
	slices.SortFunc(objects, func(a, b model.Object) int { return a.Record.Compare(b.Record.Ref) })
	slices.SortFunc(notices, func(a, b model.Notice) int { return cmp.Compare(a.Object, b.Object) })
	return objects, notices
}

// notice explains the visibility of a consumer without a scope.
func (s *Scoping) notice(consumer Identity, where, why string) model.Notice {
	return model.Notice{
		Object: "consumer " + consumer.Place(), Where: where,
		Text: why + ", so it gets no scope: its workloads see every service that is exported to their namespace, unless a Sidecar of yours says otherwise",
	}
}

// scope returns the scope of a consumer, without its providers. If a template cannot
// be rendered for a consumer, it gets no scope, so that nothing is hidden from it.
func (s *Scoping) scope(consumer Identity, called Name) (*scope, error) {
	namespace, err := render(s.namespace, consumer)
	if err != nil {
		return nil, fmt.Errorf("scopes.namespace cannot be rendered: %w", err)
	}
	one := &scope{labels: map[string]string{}, hosts: map[string]bool{}}
	one.key = model.Key{Namespace: sanitize.Namespace(namespace), Name: called.Host}
	for _, key := range slices.Sorted(maps.Keys(s.selector)) {
		value, err := render(s.selector[key], consumer)
		switch {
		case err != nil:
			return nil, fmt.Errorf("scopes.workloadSelector.%s cannot be rendered: %w", key, err)
		case !isLabelValue(value) || value == "":
			return nil, fmt.Errorf("scopes.workloadSelector.%s gives %q, which is no value of a label", key, value)
		}
		one.labels[key] = value
	}
	for _, host := range s.hosts {
		one.hosts[host] = true
	}
	return one, nil
}

// id identifies the workloads that a scope selects.
func (s *scope) id() string { return s.key.Namespace + mustJSON(s.labels) }

// where describes the selected workloads for people.
func (s *scope) where() string {
	labels := make([]string, 0, len(s.labels))
	for key, value := range s.labels {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	return "namespace " + s.key.Namespace + ", labels " + strings.Join(labels, ",")
}

// rename makes the name of a scope unique. Other versions of its consumer have
// scopes, and so have consumers with the same host in another namespace.
func (s *scope) rename(consumer Identity, taken map[model.Key]bool) {
	if version := sanitize.Label(consumer.Version); version != "" && !strings.Contains(s.key.Name, version) {
		first, domain, more := strings.Cut(s.key.Name, ".")
		versioned := sanitize.Label(first + "-" + version)
		if more {
			versioned += "." + domain
		}
		if len(versioned) <= sanitize.LongestHost {
			s.key.Name = versioned
		}
	}
	if taken[s.key] {
		s.key.Name = sanitize.DistinctHost(s.key.Name, consumer.Place())
	}
	taken[s.key] = true
}

func (s *scope) object() model.Object {
	hosts := slices.Sorted(maps.Keys(s.hosts))
	if len(hosts) == 0 {
		hosts = []string{nothing}
	}
	return model.Object{Record: model.Record{
		Ref:   model.Ref{Kind: model.KindScope, Key: s.key},
		Place: GraphPlace,
		Spec: model.Scope{
			WorkloadSelector: model.MapOf(s.labels),
			Hosts:            model.ListOf(hosts...),
			Content: mustJSON(map[string]any{
				"workloadSelector": map[string]any{"labels": s.labels},
				"egress":           []any{map[string]any{"hosts": hosts}},
			}),
		},
	}}
}

// mustJSON encodes a value that can always be encoded.
func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// CheckDotted returns an error if the template of hosts yields names without a dot,
// which scopes cannot list.
func CheckDotted(text string) error {
	host, err := parseTemplate("host", text)
	if err != nil {
		return nil //nolint:nilerr // [NewRules] reports it
	}
	plain, err := render(host, Identity{"p", "e", "a", "s", "1"})
	if err != nil || !strings.Contains(strings.Trim(plain, "."), ".") {
		return fmt.Errorf("scopes: host is %q, which gives names without a dot, and no Sidecar can name those; "+
			"set host to a name with a domain, such as %q; or remove scopes, and limit who sees a service by exportTo", text, text+".mesh")
	}
	return nil
}

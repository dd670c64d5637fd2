package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Node is the identity that the client declares. Only the field Node is required. An empty
// field has its default; without a default, it is left out of the bootstrap.
type Node struct {
	// Node is the name of the workload, or a complete node id in Istio's form,
	// TYPE~IP~NAME.NAMESPACE~DOMAIN. The other fields must not contradict such an id.
	Node           string
	Type           string   // sidecar (default) or router
	Namespace      string   // the default is "default"
	IPs            []string // of the workload, the most important first; 127.0.0.1 by default
	Domain         string   // NAMESPACE.svc.cluster.local by default
	Labels         map[string]string
	ServiceAccount string
	Cluster        string
	Network        string
	Machine        string // the machine of the workload, such as the node of its cluster
	Locality       string // REGION/ZONE/SUBZONE
	Interception   string // REDIRECT (default of an Envoy sidecar), TPROXY or NONE
	// Inbound are the listeners of an Envoy for its workload, if Interception is NONE. Each
	// is PORT or ADDRESS:PORT, and may end with =TARGET, the workload's own port on loopback.
	Inbound []string
	// Outbound are the loopback ports at which an Envoy listens for services, if
	// Interception is NONE. The default is all.
	Outbound []string
}

// identity is a node in the form of the bootstrap, with its defaults.
type identity struct {
	ID, Name, Namespace string
	Router              bool
	Region, Zone, Sub   string
	Metadata            map[string]any
}

var (
	name      = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	domain    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelName = regexp.MustCompile(`^([a-z0-9][-.a-z0-9]*/)?[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)
)

const (
	nameRule      = "use letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	namespaceRule = "use lower-case letters, digits and '-', as in a Kubernetes name"
)

// identity validates the node and sets its defaults.
func (n Node) identity() (identity, error) {
	n, err := n.split()
	if err != nil {
		return identity{}, err
	}
	n.Type, n.Namespace = cmp.Or(n.Type, "sidecar"), cmp.Or(n.Namespace, "default")
	n.Domain = cmp.Or(n.Domain, n.Namespace+".svc.cluster.local")
	hasIP := len(n.IPs) > 0
	if !hasIP {
		n.IPs = []string{"127.0.0.1"}
	}
	if err := n.validate(); err != nil {
		return identity{}, err
	}
	id := identity{
		ID:   strings.Join([]string{n.Type, n.IPs[0], n.Node + "." + n.Namespace, n.Domain}, "~"),
		Name: n.Node, Namespace: n.Namespace, Router: n.Type == "router", Metadata: map[string]any{"NAMESPACE": n.Namespace},
	}
	if hasIP {
		id.Metadata["INSTANCE_IPS"] = strings.Join(n.IPs, ",")
	}
	if len(n.Labels) > 0 {
		id.Metadata["LABELS"] = n.Labels
	}
	for key, value := range map[string]string{
		"SERVICE_ACCOUNT": n.ServiceAccount, "CLUSTER_ID": n.Cluster, "NETWORK": n.Network, "NODE_NAME": n.Machine, "INTERCEPTION_MODE": n.Interception,
	} {
		if value != "" {
			id.Metadata[key] = value
		}
	}
	levels := append(strings.Split(n.Locality, "/"), "", "")
	id.Region, id.Zone, id.Sub = levels[0], levels[1], levels[2]
	return id, nil
}

// split replaces a complete node id by its parts.
func (n Node) split() (Node, error) {
	if !strings.Contains(n.Node, "~") {
		return n, nil
	}
	parts := strings.Split(n.Node, "~")
	dot := -1
	if len(parts) == 4 {
		dot = strings.LastIndexByte(parts[2], '.')
	}
	if dot < 0 {
		return n, fmt.Errorf("--node: %q is not of the form TYPE~IP~NAME.NAMESPACE~DOMAIN, such as sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local", n.Node)
	}
	for _, part := range []struct {
		flag  string
		field *string
		inID  string
	}{
		{"--type", &n.Type, parts[0]}, {"--namespace", &n.Namespace, parts[2][dot+1:]}, {"--domain", &n.Domain, parts[3]},
	} {
		if *part.field != "" && *part.field != part.inID {
			return n, contradiction(part.flag, *part.field, part.inID, n.Node)
		}
		*part.field = part.inID
	}
	if len(n.IPs) > 0 && n.IPs[0] != parts[1] {
		return n, contradiction("--ip", n.IPs[0], parts[1], n.Node)
	}
	if len(n.IPs) == 0 {
		n.IPs = []string{parts[1]}
	}
	n.Node = parts[2][:dot]
	return n, nil
}

func contradiction(flag, value, inID, id string) error {
	return fmt.Errorf("%s: %q contradicts %q in --node %q; remove %s or correct --node", flag, value, inID, id, flag)
}

// validate reports the invalid fields of a node whose defaults are set.
func (n Node) validate() error {
	errs := []error{
		matches(name, "--node", n.Node, "name the workload, such as web-1: "+nameRule),
		matches(label, "--namespace", n.Namespace, namespaceRule),
		matches(domain, "--domain", n.Domain, "use a DNS name, such as shop.svc.cluster.local"),
		oneOf("--type", n.Type, "sidecar", "router"),
		oneOf("--interception", n.Interception, "", "REDIRECT", "TPROXY", "NONE"),
		n.validateLocality(),
	}
	for _, text := range n.IPs {
		if ip, err := netip.ParseAddr(text); err != nil || ip.Zone() != "" || ip.IsUnspecified() {
			errs = append(errs, fmt.Errorf("--ip: %q is not an address of a workload; give one such as 10.0.0.7", text))
		}
	}
	for _, f := range []struct{ flag, value string }{
		{"--service-account", n.ServiceAccount}, {"--cluster", n.Cluster}, {"--network", n.Network}, {"--node-name", n.Machine},
	} {
		if f.value != "" {
			errs = append(errs, matches(name, f.flag, f.value, nameRule))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		errs = append(errs, matches(labelName, "--labels", key, "use label names such as app or example.com/app"))
		if value := n.Labels[key]; value != "" {
			errs = append(errs, matches(name, "--labels", value, nameRule))
		}
	}
	return errors.Join(errs...)
}

func (n Node) validateLocality() error {
	levels := strings.Split(n.Locality, "/")
	if n.Locality == "" || len(levels) <= 3 && !slices.ContainsFunc(levels, func(p string) bool { return !name.MatchString(p) }) {
		return nil
	}
	return fmt.Errorf("--locality: %q is not of the form REGION/ZONE/SUBZONE; ZONE and SUBZONE are optional", n.Locality)
}

// matches returns an error if the value of a flag does not match. The error ends with fix.
func matches(pattern *regexp.Regexp, flag, value, fix string) error {
	if pattern.MatchString(value) {
		return nil
	}
	if value == "" {
		return fmt.Errorf("%s: missing; %s", flag, fix)
	}
	return fmt.Errorf("%s: %q is not valid; %s", flag, value, fix)
}

func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	allowed = slices.DeleteFunc(allowed, func(s string) bool { return s == "" })
	return fmt.Errorf("%s: %q is not known; use %s", flag, value, strings.Join(allowed, " or "))
}

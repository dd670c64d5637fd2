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

// Node is the client's identity as it declares it. An empty field is not declared, or has
// the default given here.
type Node struct {
	// Node is the name of the workload, or a whole node id of Istio's form,
	// TYPE~IP~NAME.NAMESPACE~DOMAIN, which the other fields must not contradict.
	Node           string
	Type           string   // sidecar, which is the default, or router
	Namespace      string   // default
	IPs            []string // of the workload, the most important first; 127.0.0.1
	Domain         string   // NAMESPACE.svc.cluster.local
	Labels         map[string]string
	ServiceAccount string
	Cluster        string
	Network        string
	Machine        string // the machine of the workload, such as the node of its cluster
	Locality       string // region/zone/subzone
	Interception   string // REDIRECT, TPROXY or NONE; REDIRECT for the sidecar of an Envoy
	// Inbound is the listeners of an Envoy for its workload if nothing is redirected to it.
	// Each is PORT, ADDRESS:PORT, or either with =TARGET, the workload's own port on loopback.
	Inbound []string
	// Outbound are the ports of loopback at which an Envoy listens for services if nothing is
	// redirected to it. The default is all.
	Outbound []string
}

// identity is a node in the protocol's form.
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
	likeName      = "use letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	likeNamespace = "use lower-case letters, digits and '-', as in a name of Kubernetes"
)

// identity checks the node, and returns it with its defaults.
func (n Node) identity() (identity, error) {
	n, err := n.split()
	if err != nil {
		return identity{}, err
	}
	n.Type, n.Namespace = cmp.Or(n.Type, "sidecar"), cmp.Or(n.Namespace, "default")
	n.Domain = cmp.Or(n.Domain, n.Namespace+".svc.cluster.local")
	known := len(n.IPs) > 0
	if !known {
		n.IPs = []string{"127.0.0.1"}
	}
	if err := n.validate(); err != nil {
		return identity{}, err
	}
	id := identity{
		ID:   strings.Join([]string{n.Type, n.IPs[0], n.Node + "." + n.Namespace, n.Domain}, "~"),
		Name: n.Node, Namespace: n.Namespace, Router: n.Type == "router", Metadata: map[string]any{"NAMESPACE": n.Namespace},
	}
	if known {
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
	places := append(strings.Split(n.Locality, "/"), "", "")
	id.Region, id.Zone, id.Sub = places[0], places[1], places[2]
	return id, nil
}

// split parses a whole node id.
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
		flag string
		said *string
		in   string
	}{
		{"--type", &n.Type, parts[0]}, {"--namespace", &n.Namespace, parts[2][dot+1:]}, {"--domain", &n.Domain, parts[3]},
	} {
		if *part.said != "" && *part.said != part.in {
			return n, fmt.Errorf("%s: %q is not the %q in --node %q; leave one of them away", part.flag, *part.said, part.in, n.Node)
		}
		*part.said = part.in
	}
	if len(n.IPs) > 0 && n.IPs[0] != parts[1] {
		return n, fmt.Errorf("--ip: %q is not the %q in --node %q; leave one of them away", n.IPs[0], parts[1], n.Node)
	}
	if len(n.IPs) == 0 {
		n.IPs = []string{parts[1]}
	}
	n.Node = parts[2][:dot]
	return n, nil
}

// validate reports the invalid fields of a node with its defaults.
func (n Node) validate() error {
	errs := []error{
		matches(name, "--node", n.Node, "name the workload, such as web-1: "+likeName),
		matches(label, "--namespace", n.Namespace, likeNamespace),
		matches(domain, "--domain", n.Domain, "use a DNS name, such as shop.svc.cluster.local"),
		oneOf("--type", n.Type, "sidecar", "router"),
		oneOf("--interception", n.Interception, "", "REDIRECT", "TPROXY", "NONE"),
		n.validateLocality(),
	}
	for _, text := range n.IPs {
		if ip, err := netip.ParseAddr(text); err != nil || ip.Zone() != "" || ip.IsUnspecified() {
			errs = append(errs, fmt.Errorf("--ip: %q is not the address of a workload; give one such as 10.0.0.7", text))
		}
	}
	for _, said := range []struct{ flag, value string }{
		{"--service-account", n.ServiceAccount}, {"--cluster", n.Cluster}, {"--network", n.Network}, {"--node-name", n.Machine},
	} {
		if said.value != "" {
			errs = append(errs, matches(name, said.flag, said.value, likeName))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		errs = append(errs, matches(labelName, "--labels", key, "use names of labels such as app or example.com/app"))
		if value := n.Labels[key]; value != "" {
			errs = append(errs, matches(name, "--labels", value, likeName))
		}
	}
	return errors.Join(errs...)
}

func (n Node) validateLocality() error {
	places := strings.Split(n.Locality, "/")
	if n.Locality == "" || len(places) <= 3 && !slices.ContainsFunc(places, func(p string) bool { return !name.MatchString(p) }) {
		return nil
	}
	return fmt.Errorf("--locality: %q is not of the form REGION/ZONE/SUBZONE; the last two may be left away", n.Locality)
}

func matches(pattern *regexp.Regexp, flag, value, remedy string) error {
	if pattern.MatchString(value) {
		return nil
	}
	if value == "" {
		return fmt.Errorf("%s: missing; %s", flag, remedy)
	}
	return fmt.Errorf("%s: %q is not valid; %s", flag, value, remedy)
}

func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	allowed = slices.DeleteFunc(allowed, func(s string) bool { return s == "" })
	return fmt.Errorf("%s: %q is not known; use %s", flag, value, strings.Join(allowed, " or "))
}

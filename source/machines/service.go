package machines

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// Service says what is served on machines, and where they are found.
type Service struct {
	Host string `json:"host"`
	// Namespace is that of the service; an object's own, if an object says all this.
	Namespace string `json:"namespace"`
	Ports     []Port `json:"ports"`
	// Labels stand on each endpoint, and win over tags of its machine.
	Labels map[string]string `json:"labels"`
	// ExportTo are the namespaces that see it; none means all.
	ExportTo []string `json:"exportTo"`
	// Network is the one that the machines are in; empty for none.
	Network string `json:"network"`
	// Resources are machines and sets of machines, as the cloud names them.
	Resources []string `json:"resources"`
	// Tags select the machines that have all of them.
	Tags map[string]string `json:"tags"`
}

// Port is a port of a service.
type Port struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Protocol is empty if nothing is known of it.
	Protocol string `json:"protocol"`
	// TargetPort is where machines listen; zero means Number.
	TargetPort int `json:"targetPort"`
}

// SetDefaults gives a service what it has if nothing is said.
func (s *Service) SetDefaults() { s.Namespace = "default" }

// Named is for a configuration that says but the resources of a service by its host.
func (s *Service) Named(host string) any {
	s.Host = host
	return &s.Resources
}

// protocols are those that a port may have.
var protocols = [...]string{"HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTPS", "TLS", "TCP", "MONGO", "REDIS", "MYSQL"}

// Validate reports what is wrong, but for what the cloud knows alone. Field paths begin
// with a prefix.
func (s Service) Validate(prefix string) error {
	var errs []error
	need := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(prefix+format, args...))
		}
	}
	need(istio.IsObjectName(s.Host), "host: %q is no DNS name in lower case; write one such as billing.example.com", s.Host)
	need(istio.IsNamespace(s.Namespace), "namespace: %q is no name of a namespace; write one such as default", s.Namespace)
	need(len(s.Ports) > 0, "ports: missing; name what the machines serve, such as {number: 80, protocol: HTTP}")
	need(len(s.Resources)+len(s.Tags) > 0, "resources: missing; name machines or scale sets, or select machines by tags")
	need(istio.IsLabelValue(s.Network), "network: %q cannot be the value of a label: use at most 63 letters, digits, '-', '_' and '.'", s.Network)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		need(len(content.IsLabelKey(key)) == 0 && istio.IsLabelValue(s.Labels[key]),
			"labels.%s: cannot be a label with the value %q; write what Kubernetes takes for one", key, s.Labels[key])
	}
	for i, to := range s.ExportTo {
		need(to == "." || to == "*" || to == "~" || istio.IsNamespace(to), "exportTo[%d]: %q is no namespace; write one, or \".\", \"*\" or \"~\"", i, to)
		need(to != "*" && to != "~" || len(s.ExportTo) == 1, "exportTo[%d]: %q stands alone; remove the others", i, to)
	}
	return errors.Join(append(errs, s.validatePorts(prefix))...)
}

func (s Service) validatePorts(prefix string) error {
	var errs []error
	names, numbers := map[string]bool{}, map[int]bool{}
	for i, p := range s.Ports {
		at := fmt.Sprintf("%sports[%d].", prefix, i)
		switch {
		case p.Number <= 0 || p.Number > 65535:
			errs = append(errs, fmt.Errorf("%snumber: %d is no port; write one from 1 to 65535", at, p.Number))
		case numbers[p.Number]:
			errs = append(errs, fmt.Errorf("%snumber: %d is there already; a service has each port once", at, p.Number))
		}
		if p.TargetPort < 0 || p.TargetPort > 65535 {
			errs = append(errs, fmt.Errorf("%stargetPort: %d is no port; write one from 1 to 65535, or leave it out", at, p.TargetPort))
		}
		if p.Protocol != "" && !slices.Contains(protocols[:], strings.ToUpper(p.Protocol)) {
			errs = append(errs, fmt.Errorf("%sprotocol: %q is none; write one of %s, or leave it out", at, p.Protocol, strings.Join(protocols[:], ", ")))
		}
		switch name := p.name(); {
		case !istio.IsNamespace(name):
			errs = append(errs, fmt.Errorf("%sname: %q is no name of a port; write lower-case letters, digits and dashes", at, name))
		case names[name]:
			errs = append(errs, fmt.Errorf("%sname: %q is there already; give each port its own", at, name))
		}
		names[p.name()], numbers[p.Number] = true, true
	}
	return errors.Join(errs...)
}

// name is that of the port, such as http-80 if it is given none.
func (p Port) name() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("%s-%d", cmp.Or(strings.ToLower(p.Protocol), "port"), p.Number)
}

// target is where machines listen.
func (p Port) target() uint32 {
	return uint32(cmp.Or(p.TargetPort, p.Number)) //nolint:gosec // a port
}

// spec is what the service says apart from its endpoints.
func (s Service) spec() model.Service {
	ports := make([]model.Port, len(s.Ports))
	for i, p := range s.Ports {
		ports[i] = model.Port{
			Number: uint32(p.Number), Name: p.name(), Protocol: strings.ToUpper(p.Protocol), TargetPort: uint32(p.TargetPort), //nolint:gosec // ports
		}
	}
	return model.Service{
		Hosts: model.ListOf(s.Host), Ports: model.ListOf(ports...), ExportTo: model.ListOf(s.ExportTo...),
		Location: model.MeshInternal, Resolution: model.ResolutionStatic,
	}
}

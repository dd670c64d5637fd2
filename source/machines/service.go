package machines

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// Service describes a service on machines, and selects the machines.
type Service struct {
	Host string `json:"host"`
	// Namespace is the namespace of the service; if an object defines the service,
	// the object's.
	Namespace string `json:"namespace"`
	Ports     []Port `json:"ports"`
	// Labels are set on each endpoint, and win over tags of its machine.
	Labels map[string]string `json:"labels"`
	// ExportTo lists the namespaces that see the service; none means all.
	ExportTo []string `json:"exportTo"`
	// Network is the network of the machines; empty for none.
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
	// Protocol is the port's protocol; empty if it is unknown.
	Protocol string `json:"protocol"`
	// TargetPort is the port on which machines listen; zero means Number.
	TargetPort int `json:"targetPort"`
}

// SetDefaults sets the namespace that applies without a configured one.
func (s *Service) SetDefaults() { s.Namespace = "default" }

// Named supports the short form of a configuration: a host with a list of resources.
func (s *Service) Named(host string) any {
	s.Host = host
	return &s.Resources
}

// protocols lists the valid protocols of a port.
var protocols = [...]string{"HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTPS", "TLS", "TCP", "MONGO", "REDIS", "MYSQL"}

// Validate checks everything but the facts that only the cloud knows. Prefix precedes
// each field path.
func (s Service) Validate(prefix string) error {
	var errs []error
	need := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(prefix+format, args...))
		}
	}
	need(names.IsObjectName(s.Host), "host: %q is no DNS name in lower case; write one such as billing.example.com", s.Host)
	need(names.IsNamespace(s.Namespace), "namespace: %q is no name of a namespace; write one such as default", s.Namespace)
	need(len(s.Ports) > 0, "ports: missing; name what the machines serve, such as {number: 80, protocol: HTTP}")
	need(len(s.Resources)+len(s.Tags) > 0, "resources: missing; name machines or scale sets, or select machines by tags")
	need(names.IsLabelValue(s.Network), "network: %q cannot be the value of a label: use at most 63 letters, digits, '-', '_' and '.'", s.Network)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		need(len(content.IsLabelKey(key)) == 0 && names.IsLabelValue(s.Labels[key]),
			"labels.%s: cannot be a label with the value %q; write what Kubernetes takes for one", key, s.Labels[key])
	}
	for i, to := range s.ExportTo {
		need(to == "." || to == "*" || to == "~" || names.IsNamespace(to), "exportTo[%d]: %q is no namespace; write one, or \".\", \"*\" or \"~\"", i, to)
		need(to != "*" && to != "~" || len(s.ExportTo) == 1, "exportTo[%d]: %q stands alone; remove the others", i, to)
	}
	return errors.Join(append(errs, s.validatePorts(prefix))...)
}

func (s Service) validatePorts(prefix string) error {
	var errs []error
	given, numbers := map[string]bool{}, map[int]bool{}
	for i, p := range s.Ports {
		at := fmt.Sprintf("%sports[%d].", prefix, i)
		switch {
		case p.Number <= 0 || p.Number > 65535:
			errs = append(errs, fmt.Errorf("%snumber: %d is not a port from 1 to 65535", at, p.Number))
		case numbers[p.Number]:
			errs = append(errs, fmt.Errorf("%snumber: %d is a duplicate; remove it", at, p.Number))
		}
		if p.TargetPort < 0 || p.TargetPort > 65535 {
			errs = append(errs, fmt.Errorf("%stargetPort: %d is not a port from 1 to 65535; correct it, or leave it out", at, p.TargetPort))
		}
		if p.Protocol != "" && !slices.Contains(protocols[:], strings.ToUpper(p.Protocol)) {
			errs = append(errs, fmt.Errorf("%sprotocol: %q is not a protocol; write one of %s, or leave it out", at, p.Protocol, strings.Join(protocols[:], ", ")))
		}
		switch name := p.name(); {
		case !names.IsNamespace(name):
			errs = append(errs, fmt.Errorf("%sname: %q is not a port name; use lower-case letters, digits and dashes", at, name))
		case given[name]:
			errs = append(errs, fmt.Errorf("%sname: %q is a duplicate; give each port another name", at, name))
		}
		given[p.name()], numbers[p.Number] = true, true
	}
	return errors.Join(errs...)
}

// name returns the name of the port; for a port without one, a name such as http-80.
func (p Port) name() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("%s-%d", cmp.Or(strings.ToLower(p.Protocol), "port"), p.Number)
}

// target returns the port on which machines listen.
func (p Port) target() uint32 {
	return uint32(cmp.Or(p.TargetPort, p.Number)) //nolint:gosec // a port
}

// spec returns the definition of the service, without endpoints.
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

package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// MTLS decides where sidecars take mutual TLS from each other, with certificates that Isthmus
// serves. See docs/design/0069.
type MTLS struct {
	// Mode is the mode of all ports without another: one of mtlsModes.
	Mode string `json:"mode"`
	// Namespaces are the modes of namespaces.
	Namespaces map[string]string `json:"namespaces"`
	Ports      []MTLSPort        `json:"ports"`
}

// MTLSPort is the mode of one port of the workloads of a namespace.
type MTLSPort struct {
	Namespace string `json:"namespace"`
	Port      int    `json:"port"` // at which the workload listens, and not that of a service
	Mode      string `json:"mode"`
}

// The modes of mutual TLS, as Istio has them.
const (
	DisableMTLS    = "DISABLE"    // plaintext
	PermissiveMTLS = "PERMISSIVE" // plaintext and mutual TLS
	StrictMTLS     = "STRICT"     // mutual TLS
)

var mtlsModes = []string{DisableMTLS, PermissiveMTLS, StrictMTLS}

// Mutual is a mode of mutual TLS, prepared.
type Mutual uint8

// The modes, in the order of mtlsModes.
const (
	Plaintext Mutual = iota
	Permissive
	Strict
)

func mutualOf(mode string) Mutual {
	return Mutual(max(slices.Index(mtlsModes, mode), 0)) //nolint:gosec // one of three
}

// String returns the mode as the settings name it.
func (m Mutual) String() string { return mtlsModes[m] }

// In returns the modes in a namespace; nil if no port takes mutual TLS there.
func (m *MTLS) In(namespace string) *MutualPorts { return m.mesh().In(namespace) }

// On reports whether some port takes mutual TLS.
func (m *MTLS) On() bool {
	on := func(mode string) bool { return mutualOf(mode) != Plaintext }
	return on(m.Mode) || slices.ContainsFunc(slices.Collect(maps.Values(m.Namespaces)), on) ||
		slices.ContainsFunc(m.Ports, func(p MTLSPort) bool { return on(p.Mode) })
}

func (m *MTLS) validate(f *faults) {
	known := func(at, mode string) {
		if !slices.Contains(mtlsModes, mode) {
			f.add(at, "%q is none of %s", mode, strings.Join(mtlsModes, ", "))
		}
	}
	known("mtls.mode", m.Mode)
	for _, namespace := range slices.Sorted(maps.Keys(m.Namespaces)) {
		if namespace == "" || strings.ContainsAny(namespace, "/ *") {
			f.add("mtls.namespaces", "%q is not a namespace; name one, such as shop, or set mtls.mode for all namespaces", namespace)
		}
		known("mtls.namespaces."+namespace, m.Namespaces[namespace])
	}
	first := map[MTLSPort]int{}
	for i, p := range m.Ports {
		at := fmt.Sprintf("mtls.ports[%d]", i)
		where := MTLSPort{Namespace: p.Namespace, Port: p.Port}
		earlier, twice := first[where]
		switch {
		case p.Namespace == "" || strings.ContainsAny(p.Namespace, "/ *"):
			f.add(at+".namespace", "%q is not a namespace; name one, such as shop", p.Namespace)
		case twice:
			f.add(at+".port", "%d of namespace %s is also mtls.ports[%d]; give each port one entry", p.Port, p.Namespace, earlier)
		case IsOwnPort(p.number()):
			f.add(at+".port", "%d is reserved for Envoy and Istio; name a port of a workload, such as 8080", p.Port)
		default:
			first[where] = i
			f.within(at+".port", p.Port, 1, highestPort, "the port at which the workload listens, such as 8080")
		}
		known(at+".mode", p.Mode)
	}
}

func (p MTLSPort) number() uint32 { return uint32(p.Port) } //nolint:gosec // it is validated

// MutualPorts are the modes of the ports of workloads in a namespace. Nil is plaintext for all.
type MutualPorts struct {
	Others Mutual // the mode of all ports but the named ones
	named  map[uint32]Mutual
}

// Of returns the mode of a port.
func (m *MutualPorts) Of(port uint32) Mutual {
	if m == nil {
		return Plaintext
	}
	if mode, named := m.named[port]; named {
		return mode
	}
	return m.Others
}

// Exceptions yields the ports with another mode than most.
func (m *MutualPorts) Exceptions() iter.Seq2[uint32, Mutual] {
	return func(yield func(uint32, Mutual) bool) {
		if m == nil {
			return
		}
		for port, mode := range m.named {
			if mode != m.Others && !yield(port, mode) {
				return
			}
		}
	}
}

// MutualLabel is the label of an endpoint behind a sidecar that takes mutual TLS, with its
// value. Istio's injector sets it.
const MutualLabel = mutualLabel + ": " + mutualValue

const (
	mutualLabel = "security.istio.io/tlsMode"
	mutualValue = "istio"
)

// Reaches reports whether Envoys call an endpoint by mutual TLS: it has the label, and its port
// takes mutual TLS.
func (m *MutualPorts) Reaches(labels model.Labels, port uint32) bool {
	if m == nil || port == 0 || m.Of(port) == Plaintext {
		return false
	}
	value, _ := labels.Get(mutualLabel)
	return value == mutualValue
}

// Mesh is [MTLS], prepared. Nil is plaintext everywhere.
type Mesh struct {
	// Upstream is the TLS of calls between workloads, with certificates that Isthmus serves.
	Upstream *UpstreamTLS

	others     *MutualPorts
	namespaces map[string]*MutualPorts
}

// In returns the modes in a namespace; nil if no port takes mutual TLS there. The pointer is
// always the same, so that subjects which hold it are equal.
func (m *Mesh) In(namespace string) *MutualPorts {
	if m == nil {
		return nil
	}
	if of, named := m.namespaces[namespace]; named {
		return of
	}
	return m.others
}

// mesh returns the prepared modes.
func (m *MTLS) mesh() *Mesh {
	if !m.On() {
		return nil
	}
	modes := map[string]*MutualPorts{}
	for namespace, mode := range m.Namespaces {
		modes[namespace] = &MutualPorts{Others: mutualOf(mode)}
	}
	for _, p := range m.Ports {
		if modes[p.Namespace] == nil {
			modes[p.Namespace] = &MutualPorts{Others: mutualOf(m.Mode)}
		}
		of := modes[p.Namespace]
		if of.named == nil {
			of.named = map[uint32]Mutual{}
		}
		of.named[p.number()] = mutualOf(p.Mode)
	}
	prepared := &Mesh{Upstream: &UpstreamTLS{Mode: IstioMutualTLS}, namespaces: map[string]*MutualPorts{}}
	if of := (&MutualPorts{Others: mutualOf(m.Mode)}); of.takes() {
		prepared.others = of
	}
	for namespace, of := range modes {
		prepared.namespaces[namespace] = nil
		if of.takes() {
			prepared.namespaces[namespace] = of
		}
	}
	return prepared
}

// takes reports whether some port takes mutual TLS.
func (m *MutualPorts) takes() bool {
	return m.Others != Plaintext || slices.ContainsFunc(slices.Collect(maps.Values(m.named)), func(of Mutual) bool { return of != Plaintext })
}

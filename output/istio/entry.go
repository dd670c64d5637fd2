package istio

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Translation is what a service is written as, and what could not be.
type Translation struct {
	Objects []Object
	LeftOut []LeftOut
	// Refused says why the service cannot be written at all; empty if it can.
	Refused string
}

// Translate returns the objects of a service. exists tells which names of
// objects are in use for the service now; see [Config.ShardSize].
func (c Config) Translate(instance string, s *catalog.Service, exists func(name string) bool) Translation {
	if reason := refusal(s); reason != "" {
		return Translation{Refused: reason}
	}
	ports := writable(s.Ports)
	g := gather(s, ports)
	if n := len(s.Ports) - len(ports); n > 0 {
		g.left["ports beyond the 256 that Istio takes"] = n
	}
	var t Translation
	parts := layout(s, ports, g.endpoints, c.ShardSize, exists)
	g.countLabels()
	g.countPorts(ports, parts)
	for _, p := range parts {
		t.Objects = append(t.Objects, Object{
			Kind: ServiceEntry, Namespace: s.Key.Namespace, Name: p.name,
			Labels:      marks(instance),
			Annotations: map[string]string{annotationSources: p.sources(s), annotationService: s.Key.Host},
			Spec:        entry(s, p, len(g.endpoints)),
		})
	}
	t.LeftOut = sorted(g.left)
	return t
}

// sources names those that a part is made of: whoever defines the service, and
// whoever has an endpoint in it.
func (p part) sources(s *catalog.Service) string {
	names := s.Sources()
	var others []string
	for _, e := range p.endpoints {
		if name := e.Record.Source; !slices.Contains(names, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return strings.Join(append(names, others...), ",")
}

func marks(instance string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelInstance: instance}
}

// refusal says why Istio would not take a service at all.
func refusal(s *catalog.Service) string {
	switch {
	case !isHost(s.Key.Host):
		return strconv.Quote(s.Key.Host) + " is not a DNS name that Istio takes for a host; have the source name the service otherwise"
	case !isName(s.Key.Namespace) || strings.Contains(s.Key.Namespace, "."):
		return strconv.Quote(s.Key.Namespace) + " is not the name of a namespace; have the source choose another"
	}
	return ""
}

// isHost reports whether Istio takes s for a host.
func isHost(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	first, rest, more := strings.Cut(s, ".")
	if wild, ok := strings.CutPrefix(first, "*"); ok {
		wild = strings.TrimPrefix(wild, "-")
		if wild == "" && (!more || first != "*") || len(first) > 63 {
			return false
		}
		first = wild
	}
	if first != "" && !isLabel(first) {
		return false
	}
	if !more {
		return first != ""
	}
	parts := strings.Split(strings.TrimSuffix(rest, "."), ".")
	for _, part := range parts {
		if !isLabel(part) {
			return false
		}
	}
	_, err := strconv.Atoi(parts[len(parts)-1])
	return err != nil
}

// isLabel reports whether s is a label of a DNS name, in any case.
func isLabel(s string) bool { return len(s) <= 63 && isWord(s) && !strings.ContainsAny(s, "_.") }

// mostPorts is how many ports Istio's schema allows in an object.
const mostPorts = 256

// writable returns the ports as Istio takes them: names that are none, or that
// two ports share since the sources differ, are replaced.
func writable(ports []model.Port) []model.Port {
	named := map[string]bool{}
	out := make([]model.Port, 0, len(ports))
	for _, p := range ports[:min(len(ports), mostPorts)] {
		if !isLabel(p.Name) || len(p.Name) > 62 || named[p.Name] {
			p.Name = "port-" + strconv.Itoa(int(p.Number))
		}
		for named[p.Name] {
			p.Name += "-x"
		}
		named[p.Name] = true
		if !isProtocol(p.Protocol) {
			p.Protocol = "TCP" // whatever it is, its bytes are carried
		}
		out = append(out, p)
	}
	return out
}

func isProtocol(name string) bool {
	switch strings.ToUpper(name) {
	case "HTTP", "HTTP_PROXY", "HTTP2", "HTTPS", "GRPC", "GRPC-WEB", "TLS", "TCP", "UDP", "MONGO", "REDIS", "MYSQL", "":
		return true
	}
	return false
}

// entry builds the specification of one part of a service. Empty fields are
// left away, as the API server would keep them.
func entry(s *catalog.Service, p part, endpoints int) map[string]any {
	spec := map[string]any{
		"hosts":      []any{s.Key.Host},
		"location":   string(s.Location),
		"resolution": string(resolution(s, endpoints)),
	}
	put := func(field string, list []any) {
		if len(list) > 0 {
			spec[field] = list
		}
	}
	put("addresses", texts(s.Addresses))
	put("exportTo", texts(s.ExportTo))
	put("subjectAltNames", texts(s.SubjectAltNames))
	var ports, inline []any
	for _, port := range p.ports {
		ports = append(ports, portSpec(port))
	}
	for _, e := range p.endpoints {
		inline = append(inline, e.spec(p.ports))
	}
	put("ports", ports)
	put("endpoints", inline)
	return spec
}

// resolution is that of the service, unless nothing is left to look up: Istio
// would then look up the host itself, and send traffic to whatever answers.
func resolution(s *catalog.Service, endpoints int) model.Resolution {
	if isDNS(s.Resolution) && endpoints == 0 && len(s.Ports) > 0 {
		return model.ResolutionStatic
	}
	return s.Resolution
}

func portSpec(p model.Port) map[string]any {
	spec := map[string]any{"number": int64(p.Number), "name": p.Name}
	if p.Protocol != "" {
		spec["protocol"] = p.Protocol
	}
	if p.TargetPort != 0 {
		spec["targetPort"] = int64(p.TargetPort)
	}
	return spec
}

// spec builds the endpoint of a part that has just the ports it serves.
func (e endpoint) spec(ports []model.Port) map[string]any {
	spec := map[string]any{}
	put := func(field, value string) {
		if value != "" {
			spec[field] = value
		}
	}
	put("address", e.Address)
	put("network", e.Network)
	put("locality", locality(e.Locality))
	put("serviceAccount", e.ServiceAccount)
	if e.Weight != 0 {
		spec["weight"] = int64(e.Weight)
	}
	if labels := e.labels(); len(labels) > 0 {
		spec["labels"] = labels
	}
	if own := e.ownPorts(ports); len(own) > 0 {
		spec["ports"] = own
	}
	return spec
}

// ownPorts names the ports of a service for which the endpoint listens
// elsewhere than the service says.
func (e endpoint) ownPorts(ports []model.Port) map[string]any {
	if isUnix(e.Address) {
		return nil
	}
	own := map[string]any{}
	for i, s := range e.ports {
		usual := ports[i].Number
		if ports[i].TargetPort != 0 {
			usual = ports[i].TargetPort
		}
		if s.at != usual {
			own[ports[i].Name] = int64(s.at)
		}
	}
	return own
}

func locality(l model.Locality) string {
	return strings.TrimRight(strings.Join([]string{l.Region, l.Zone, l.SubZone}, "/"), "/")
}

func texts(l model.List[string]) []any {
	var list []any
	for s := range l.All() {
		list = append(list, s)
	}
	return list
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

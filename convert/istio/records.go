package istio

import (
	"maps"
	"strconv"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// serviceOf converts a valid ServiceEntry into a service.
func serviceOf(meta model.Meta, entry *networking.ServiceEntry) model.Service {
	return model.Service{
		Meta:             meta,
		Hosts:            model.ListOf(entry.GetHosts()...),
		Addresses:        model.ListOf(normalAddresses(entry.GetAddresses())...),
		Ports:            model.ListOf(servicePorts(entry.GetPorts())...),
		Location:         model.Location(entry.GetLocation().String()),
		Resolution:       model.Resolution(entry.GetResolution().String()),
		ExportTo:         model.ListOf(entry.GetExportTo()...),
		SubjectAltNames:  model.ListOf(entry.GetSubjectAltNames()...),
		WorkloadSelector: model.MapOf(entry.GetWorkloadSelector().GetLabels()),
		Traffic:          trafficOf(meta),
	}
}

func normalAddresses(addresses []string) []string {
	out := make([]string, len(addresses))
	for i, address := range addresses {
		out[i] = names.NormalAddress(address)
	}
	return out
}

func servicePorts(ports []*networking.ServicePort) []model.Port {
	out := make([]model.Port, len(ports))
	for i, port := range ports {
		out[i] = model.Port{
			Number:     port.GetNumber(),
			Name:       port.GetName(),
			Protocol:   strings.ToUpper(port.GetProtocol()),
			TargetPort: port.GetTargetPort(),
		}
	}
	return out
}

// IsDNS reports whether the addresses of a service's endpoints are names to look up.
func IsDNS(r model.Resolution) bool {
	return r == model.ResolutionDNS || r == model.ResolutionDNSRoundRobin
}

// endpointsOf converts the inline endpoints of a service into its owned records. Neighbours
// with the same labels or ports share them.
func endpointsOf(owner model.Ref, entries []*networking.WorkloadEntry) []Owned {
	if len(entries) == 0 {
		return nil
	}
	endpoints := make([]model.Endpoint, len(entries))
	var last model.Endpoint
	for i, entry := range entries {
		e := endpointOf(entry)
		if e.Labels.Equal(last.Labels) {
			e.Labels = last.Labels
		}
		if e.Ports.Equal(last.Ports) {
			e.Ports = last.Ports
		}
		endpoints[i], last = e, e
	}
	list := make([]Owned, len(endpoints))
	for i, name := range endpointNames(endpoints) {
		list[i] = Owned{Name: owner.Name + "/" + name, Spec: endpoints[i]}
	}
	return list
}

// endpointNames names endpoints by their address, and by their network and ports if several have the
// same address. Attributes and position do not count: a change of weight or labels is a
// change of the same record, and a new order is no change. Only endpoints that are equal in
// both are distinguished by their order.
func endpointNames(endpoints []model.Endpoint) []string {
	names := make([]string, len(endpoints))
	count := make(map[string]int, len(endpoints))
	for i, e := range endpoints {
		names[i] = e.Address
		if e.Address == "" {
			names[i] = "network=" + e.Network
		}
		count[names[i]]++
	}
	seen := make(map[string]int, len(endpoints))
	for i, e := range endpoints {
		if count[names[i]] > 1 {
			if e.Network != "" && e.Address != "" {
				names[i] += "@" + e.Network
			}
			names[i] += portsSuffix(e.Ports)
		}
		seen[names[i]]++
		if n := seen[names[i]]; n > 1 {
			names[i] += "~" + strconv.Itoa(n)
		}
	}
	return names
}

func portsSuffix(ports model.Map[uint32]) string {
	var b strings.Builder
	separator := byte('#')
	for name, number := range ports.All() {
		b.WriteByte(separator)
		b.WriteString(name + "=" + strconv.FormatUint(uint64(number), 10))
		separator = ','
	}
	return b.String()
}

func endpointOf(entry *networking.WorkloadEntry) model.Endpoint {
	return model.Endpoint{
		Address:        names.NormalAddress(entry.GetAddress()),
		Ports:          model.MapOf(entry.GetPorts()),
		Labels:         model.MapOf(entry.GetLabels()),
		Network:        entry.GetNetwork(),
		Locality:       localityOf(entry.GetLocality()),
		Weight:         entry.GetWeight(),
		ServiceAccount: entry.GetServiceAccount(),
	}
}

// localityOf reads "region/zone/subzone". Text after a third slash belongs to the subzone.
func localityOf(s string) model.Locality {
	parts := append(strings.SplitN(s, "/", 3), "", "")
	return model.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

// mostAhead is how far the clock of another machine may be ahead. A later time is none: it would be
// the newest for ever.
const mostAhead = 5 * time.Minute

// connectedAt returns when istiod wrote that the workload connected; zero if it did not.
func connectedAt(meta model.Meta) int64 {
	text, _ := meta.Annotations.Get("istio.io/connectedAt")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || time.Until(at) > mostAhead {
		return 0
	}
	return max(at.UnixMilli(), 0)
}

// workloadOf converts a valid WorkloadEntry into a workload.
func workloadOf(meta model.Meta, entry *networking.WorkloadEntry, health model.Health) model.Workload {
	endpoint := endpointOf(entry)
	if meta.Labels.Len() > 0 {
		labels := maps.Clone(entry.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Insert(labels, meta.Labels.All())
		endpoint.Labels = model.MapOf(labels)
	}
	endpoint.Health, endpoint.Registered = health, connectedAt(meta)
	return model.Workload{Meta: meta, Endpoint: endpoint}
}

// healthOf reads the health condition from the status of a WorkloadEntry, which the prober
// of the workload writes. The rest of the status is ignored.
func healthOf(status *yamlpos.Node) model.Health {
	for _, condition := range status.Get("conditions").Items() {
		if condition.Get("type").Text() == "Healthy" && strings.EqualFold(condition.Get("status").Text(), "false") {
			return model.Unhealthy
		}
	}
	return model.Healthy
}

// everything is the egress hosts of a Sidecar without egress.
const everything = "*/*"

// scopeOf converts a valid Sidecar into a scope. Only the hosts of its listeners take
// effect: the listeners themselves concern only the proxy.
func scopeOf(meta model.Meta, sidecar *networking.Sidecar, spec *yamlpos.Node) model.Scope {
	var hosts []string
	for _, listener := range sidecar.GetEgress() {
		hosts = append(hosts, listener.GetHosts()...)
	}
	if len(sidecar.GetEgress()) == 0 {
		hosts = []string{everything}
	}
	return model.Scope{
		Meta:             meta,
		WorkloadSelector: model.MapOf(sidecar.GetWorkloadSelector().GetLabels()),
		Hosts:            model.ListOf(hosts...),
		Content:          string(mustJSON(plain(spec))),
	}
}

// trafficDistribution is the annotation with the preferred endpoints of a ServiceEntry.
const trafficDistribution = "networking.istio.io/traffic-distribution"

func trafficOf(meta model.Meta) model.Traffic {
	distribution, _ := meta.Annotations.Get(trafficDistribution)
	return model.Traffic{Prefer: model.PreferenceNamed(distribution)}
}

package istio

import (
	"maps"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

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

// endpointNames names endpoints by their address, and by their ports if several have the
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
		Address:        normalAddress(entry.GetAddress()),
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
	endpoint.Health = health
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

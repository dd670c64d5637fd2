package records

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Conversion is the result for one service.
type Conversion struct {
	Object   model.Object
	Rejected []model.Rejection
	Ports    []Port
	Left     int // properties that cannot be labels
}

// announced is an instance with its endpoints parsed.
type announced struct {
	registry.Instance
	listeners []listener
}

// Convert turns a service and its instances into a service record and endpoint
// records. The result depends only on the arguments, and not on the order of
// instances. An invalid instance is rejected by itself.
func (r Rules) Convert(i Identity, called Name, instances []registry.Instance, known []Port, now time.Time) Conversion {
	c := Conversion{}
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Namespace: called.Namespace, Name: called.Host}}
	reject := func(instance, field, reason string) {
		key := model.Key{Namespace: called.Namespace, Name: called.Host + "/" + instance}
		c.Rejected = append(c.Rejected, model.Rejection{
			Ref: model.Ref{Kind: model.KindEndpoint, Key: key}, Place: i.Place(), Where: i.Place(),
			Object: "instance " + i.Place() + "/" + instance, Field: field, Reason: reason,
		})
	}
	all := announce(instances, reject)
	c.Ports = choosePorts(all, known, now, r.portGrace)
	names := make(map[uint32]Port, len(c.Ports))
	for _, p := range c.Ports {
		names[p.number] = p
	}
	var owned []model.Record
	isKey, isValue := remember(isLabelKey), remember(isLabelValue)
	for _, a := range all {
		labels, left := a.labels(isKey, isValue)
		c.Left += left
		for _, e := range a.endpoints(names, labels, r.serveTesting, reject) {
			e.Key = model.Key{Namespace: ref.Namespace, Name: ref.Name + "/" + e.Name}
			owned = append(owned, e)
		}
	}
	exportTo, err := r.exports.of(i, called.Namespace)
	if err != nil { // an invalid exportTo must not make a service visible by mistake
		exportTo = []string{exportToNobody}
		c.Rejected = append(c.Rejected, model.Rejection{
			Place: i.Place(), Where: i.Place(), Object: i.Object(), Field: "exportTo",
			Reason: err.Error() + "; until then no namespace sees the service",
		})
	}
	slices.SortFunc(owned, func(a, b model.Record) int { return a.Compare(b.Ref) })
	c.Object = model.Object{Record: model.Record{Ref: ref, Place: i.Place(), Spec: model.Service{
		Meta:       model.Meta{Annotations: idlePorts(c.Ports)},
		Hosts:      model.ListOf(called.Host),
		Ports:      servicePorts(c.Ports),
		Location:   model.MeshInternal,
		Resolution: model.ResolutionStatic,
		ExportTo:   model.ListOf(exportTo...),
	}}, Owned: owned}
	return c
}

// announce parses the endpoints of all instances, in the order of their ids. Of
// instances with the same id, the first counts.
func announce(instances []registry.Instance, reject func(instance, field, reason string)) []announced {
	sorted := slices.SortedFunc(slices.Values(instances), compareInstances)
	all := make([]announced, 0, len(sorted))
	for n, instance := range sorted {
		switch {
		case instance.ID == "":
			reject(instance.HostName, "instanceId", "the instance has no id: register it anew")
			continue
		case n > 0 && sorted[n-1].ID == instance.ID:
			reject(instance.ID, "instanceId", "another instance of the service has this id and counts: register one of them anew")
			continue
		}
		if instance.Broken != "" {
			reject(instance.ID, "", "the instance is not as instances are: "+instance.Broken+"; register it anew")
			continue
		}
		listeners, wrong := parseListeners(instance.Endpoints)
		if len(wrong) > 0 {
			reject(instance.ID, "endpoints", strings.Join(wrong, "; "))
		} else if len(listeners) == 0 {
			reject(instance.ID, "endpoints", "the instance listens nowhere: have it register its endpoints, such as rest://10.0.0.1:8080")
		}
		if len(listeners) > 0 {
			all = append(all, announced{instance, listeners})
		}
	}
	return all
}

// compareInstances orders by id, and then by all other fields.
func compareInstances(a, b registry.Instance) int {
	if a.ID != b.ID { // ids hardly ever repeat, so the rest is rarely compared
		return cmp.Compare(a.ID, b.ID)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// endpoints returns the records of an instance, one for each of its addresses, named
// within the service. They serve only the ports that they listen on.
func (a announced) endpoints(
	ports map[uint32]Port, labels model.Labels, serveTesting bool, reject func(instance, field, reason string),
) (records []model.Record) {
	spec := model.Endpoint{
		Exact: true, Labels: labels, Locality: a.locality(), Weight: a.weight(), Health: a.health(serveTesting), Registered: int64(a.Registered),
	}
	var wrong []string
	byAddress := a.serving(ports, &wrong)
	if len(wrong) > 0 {
		reject(a.ID, "endpoints", strings.Join(wrong, "; "))
	}
	for address, numbers := range byAddress {
		e := spec
		e.Address, e.Ports = address, model.MapOf(numbers)
		name := a.ID
		if len(byAddress) > 1 {
			name += "@" + address
		}
		records = append(records, model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{Name: name}}, Spec: e})
	}
	return records
}

// serving returns the ports of each address by name, and adds a reason for each port
// the service cannot have.
func (a announced) serving(ports map[uint32]Port, wrong *[]string) map[string]map[string]uint32 {
	byAddress := map[string]map[string]uint32{}
	for _, l := range a.listeners {
		p, ok := ports[l.port]
		switch {
		case !ok:
			*wrong = append(*wrong, fmt.Sprintf("port %d is one too many: a service has at most %d; use fewer ports", l.port, mostPorts))
			continue
		case p.protocol != l.protocol:
			*wrong = append(*wrong, fmt.Sprintf("port %d is %s here and %s for most instances of the service, and one port cannot be both: "+
				"register the same everywhere, or use another port", l.port, l.protocol, p.protocol))
			continue
		}
		address := l.address.String()
		if byAddress[address] == nil {
			byAddress[address] = map[string]uint32{}
		}
		byAddress[address][p.name()] = l.port
	}
	return byAddress
}

// IgnoredProperties is the name under which properties that cannot be labels are counted.
const IgnoredProperties = "property that cannot be a label"

// kindService is the kind in rejections of whole services. No record has this kind,
// so a rejection never applies to a record of the mesh.
const kindService model.Kind = "Microservice"

// Rejection returns the rejection of a whole service.
func Rejection(i Identity, reason string) model.Rejection {
	return model.Rejection{
		Ref:   model.Ref{Kind: kindService, Key: model.Key{Name: i.Place()}},
		Place: i.Place(), Object: i.Object(), Where: i.Place(), Reason: reason,
	}
}

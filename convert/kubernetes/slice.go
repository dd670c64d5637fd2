package kubernetes

import (
	"cmp"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/isthmus-mesh/isthmus/model"
)

// Slice is the fields read of an EndpointSlice. It is never written to after it is read.
type Slice struct {
	Service Name   // its Service; without a name if it has none
	Name    string // its own
	IPv6    bool
	// FQDN means that its addresses are DNS names, which become no records.
	FQDN bool

	written   time.Time // the time of the newest pod change in it
	version   string    // of the API server
	ports     *portList
	endpoints []sliceEndpoint
}

type sliceEndpoint struct {
	address        string
	uid, pod       string // of its target; pod is empty if the target is not a Pod
	node, zone     string
	hostname       string
	ready, serving bool
	terminating    bool
}

// ReadSlice reads an EndpointSlice.
func ReadSlice(s *discoveryv1.EndpointSlice) *Slice {
	read := &Slice{
		Service: Name{s.Namespace, s.Labels[discoveryv1.LabelServiceName]},
		Name:    s.Name,
		IPv6:    s.AddressType == discoveryv1.AddressTypeIPv6,
		FQDN:    s.AddressType == discoveryv1.AddressTypeFQDN,
		version: s.ResourceVersion,
		ports:   readPorts(s.Ports),
	}
	if read.FQDN {
		return read
	}
	read.written, _ = time.Parse(time.RFC3339Nano, s.Annotations[corev1.EndpointsLastChangeTriggerTime])
	read.endpoints = make([]sliceEndpoint, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		if e, ok := readEndpoint(&s.Endpoints[i]); ok {
			read.endpoints = append(read.endpoints, e)
		}
	}
	return read
}

// Pods yields the pods of the slice, with the only fields in it: their names and UIDs.
func (s *Slice) Pods() iter.Seq[Pod] {
	return func(yield func(Pod) bool) {
		for i := range s.endpoints {
			e := &s.endpoints[i]
			if e.pod != "" && e.uid != "" && !yield(Pod{Name: Name{s.Service.Namespace, e.pod}, UID: e.uid}) {
				return
			}
		}
	}
}

// readEndpoint reads an endpoint. Its addresses are all of one family and equivalent, so
// the first one counts.
func readEndpoint(e *discoveryv1.Endpoint) (read sliceEndpoint, ok bool) {
	if len(e.Addresses) == 0 {
		return read, false
	}
	ip, ok := parseAddress(e.Addresses[0])
	if !ok {
		return read, false
	}
	read = sliceEndpoint{
		address: ip.String(), node: value(e.NodeName), zone: value(e.Zone), hostname: value(e.Hostname),
		ready: orTrue(e.Conditions.Ready), serving: orTrue(e.Conditions.Serving), terminating: value(e.Conditions.Terminating),
	}
	if e.TargetRef != nil {
		read.uid = string(e.TargetRef.UID)
		if e.TargetRef.Kind == "Pod" {
			read.pod = e.TargetRef.Name
		}
	}
	return read, true
}

// newer orders slices by the change of the pods that they show, then by their resource
// version. Slices of one Service are often written out of that order, and the creation time
// means nothing.
func (s *Slice) newer(o *Slice) int {
	return cmp.Or(
		s.written.Compare(o.written),
		cmp.Compare(len(s.version), len(o.version)), // a number, which must not be parsed
		cmp.Compare(s.version, o.version),
		cmp.Compare(s.Name, o.Name),
	)
}

// health returns the health by an endpoint's conditions.
func (e *sliceEndpoint) health(s *Service) model.Health {
	switch {
	case e.ready, s.NotReady:
		return model.Healthy
	case e.serving && e.terminating:
		return model.Draining
	default:
		return model.Unhealthy
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// orTrue returns a condition, which is true by default.
func orTrue(condition *bool) bool { return condition == nil || *condition }

package kubernetes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus-mesh/isthmus/model"
)

// Name is the namespace and name of a Service.
type Name struct{ Namespace, Name string }

func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Cluster identifies the cluster of objects.
type Cluster struct {
	Domain  string // of its DNS, such as cluster.local
	Network string // of its pods; may be empty
	Name    string // on each endpoint, as the label of [ClusterLabel]; may be empty
}

// ClusterLabel is the label with the cluster of an endpoint, as in Istio.
const ClusterLabel = "topology.istio.io/cluster"

// Service is the fields read of a Service.
type Service struct {
	Name
	Spec model.Service
	// External is the DNS name for which the Service is an alias; empty for most.
	External string
	// NotReady means that endpoints are served whether they are ready or not.
	NotReady bool
	// IPv6 means that its first addresses are of that family.
	IPv6 bool

	portNames map[string]string // the record's port names by the names in slices; nil if they are the same
}

// Host is the DNS name of a Service.
func (c Cluster) Host(n Name) string {
	return n.Name + "." + n.Namespace + ".svc." + c.Domain
}

// apiServer is the Service of a cluster's API servers, which each cluster has.
var apiServer = Name{"default", "kubernetes"}

// exportAnnotation limits the namespaces that see a Service, as in Istio.
const exportAnnotation = "networking.istio.io/exportTo"

// ReadService reads a Service.
func (c Cluster) ReadService(s *corev1.Service) Service {
	read := Service{
		Name:     Name{s.Namespace, s.Name},
		NotReady: s.Spec.PublishNotReadyAddresses,
	}
	read.Spec = model.Service{
		Meta:       metaOf(&s.ObjectMeta),
		Hosts:      model.ListOf(c.Host(read.Name)),
		Addresses:  model.ListOf(clusterIPs(&s.Spec)...),
		Location:   model.MeshInternal,
		Resolution: model.ResolutionStatic,
		ExportTo:   model.ListOf(split(s.Annotations[exportAnnotation])...),
		Traffic:    trafficOf(s),
	}
	if read.Spec.Addresses.Len() > 0 {
		read.Spec.Cluster = c.Name
	}
	read.Spec.Traffic.ClusterLocal = read.Name == apiServer && s.Spec.Type != corev1.ServiceTypeExternalName
	if !read.Spec.Traffic.Headless {
		read.Spec.WorkloadSelector = model.MapOf(s.Spec.Selector)
	}
	read.ports(s.Spec.Ports)
	if len(s.Spec.IPFamilies) > 0 {
		read.IPv6 = s.Spec.IPFamilies[0] == corev1.IPv6Protocol
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		read.External = strings.TrimSuffix(strings.ToLower(s.Spec.ExternalName), ".")
		read.Spec.Location, read.Spec.Resolution = model.MeshExternal, model.ResolutionDNS
		read.Spec.Addresses, read.Spec.Cluster = model.List[string]{}, ""
		read.Spec.Traffic, read.Spec.WorkloadSelector = model.Traffic{}, model.Labels{}
		if ip, ok := parseAddress(read.External); ok {
			read.External = ip.String()
			read.Spec.Resolution = model.ResolutionStatic
		}
		ports := slices.Collect(read.Spec.Ports.All())
		for i := range ports {
			ports[i].TargetPort, ports[i].TargetName = 0, "" // clients resolve a name, and choose a port themselves
		}
		read.Spec.Ports = model.ListOf(ports...)
	}
	return read
}

// clusterIPs returns the addresses of a Service. An API server older than dual stack has
// only one field for them.
func clusterIPs(s *corev1.ServiceSpec) (list []string) {
	all := s.ClusterIPs
	if len(all) == 0 {
		all = []string{s.ClusterIP}
	}
	for _, text := range all {
		if ip, ok := parseAddress(text); ok {
			list = append(list, ip.String())
		}
	}
	return list
}

// ports sets the ports. Slices use the Service's port names, and the name of a single port
// may be empty; a record's port has a name.
func (s *Service) ports(list []corev1.ServicePort) {
	ports := make([]model.Port, 0, len(list))
	seen := map[int32]bool{}
	for i := range list {
		p := &list[i]
		port := model.Port{Number: uint32(p.Port), Name: p.Name, Protocol: protocolOf(p), TargetPort: targetPort(p), TargetName: p.TargetPort.StrVal}
		switch {
		case port.Protocol == "UDP" && hasTCP(list, p.Port), seen[p.Port]:
			continue // of two ports with one number, the mesh carries TCP
		case p.Name == "":
			port.Name = "port-" + strconv.Itoa(int(p.Port))
			s.portNames = map[string]string{"": port.Name}
		}
		seen[p.Port] = true
		ports = append(ports, port)
	}
	s.Spec.Ports = model.ListOf(ports...)
}

func hasTCP(list []corev1.ServicePort, number int32) bool {
	for i := range list {
		if list[i].Port == number && (list[i].Protocol == corev1.ProtocolTCP || list[i].Protocol == "") {
			return true
		}
	}
	return false
}

// targetPort returns the default port of endpoints. A named target port differs between
// endpoints, and is in the slices.
func targetPort(p *corev1.ServicePort) uint32 {
	if n := p.TargetPort.IntVal; n > 0 && n != p.Port {
		return uint32(n)
	}
	return 0
}

// portName returns the record's name of a port in slices.
func (s *Service) portName(inSlice string) string {
	if name, renamed := s.portNames[inSlice]; renamed {
		return name
	}
	return inSlice
}

// metaOf returns the metadata of an object, without the annotation in which kubectl stores
// the last applied manifest.
func metaOf(m *metav1.ObjectMeta) model.Meta {
	annotations := make(map[string]string, len(m.Annotations))
	for key, value := range m.Annotations {
		if key != corev1.LastAppliedConfigAnnotation {
			annotations[key] = value
		}
	}
	return model.Meta{
		Labels: model.MapOf(m.Labels), Annotations: model.MapOf(annotations), Created: m.CreationTimestamp.UTC(),
	}
}

func split(list string) (items []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Ref names the record of a Service. No other object that describes services has the same
// name, since their names contain no colon.
func (n Name) Ref() model.Ref {
	return model.Ref{Kind: model.KindService, Key: model.Key{Namespace: n.Namespace, Name: "service:" + n.Name}}
}

// Place is the place of all records that are made of Services.
const Place = "services"

// Compare orders names by namespace, then name.
func (n Name) Compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

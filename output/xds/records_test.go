package xds_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// service is a STATIC service on port 80, seen by everyone, from the source
// "registry". The functions that follow change a copy.
func service(namespace, host string) model.Record {
	return model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "registry", Namespace: namespace, Name: host}},
		Spec: model.Service{
			Hosts:      model.ListOf(host),
			Ports:      model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
			Location:   model.MeshInternal,
			Resolution: model.ResolutionStatic,
		},
	}
}

// only exports a service to some namespaces.
func only(r model.Record, namespaces ...string) model.Record {
	spec := r.Spec.(model.Service)
	spec.ExportTo = model.ListOf(namespaces...)
	r.Spec = spec
	return r
}

// speaking gives the port of a service another protocol. HTTP2 makes another
// cluster of it.
func speaking(r model.Record, protocol string) model.Record {
	spec := r.Spec.(model.Service)
	spec.Ports = model.ListOf(model.Port{Number: 80, Name: "http", Protocol: protocol})
	r.Spec = spec
	return r
}

// resolving makes the endpoints of a service names to resolve.
func resolving(r model.Record) model.Record {
	spec := r.Spec.(model.Service)
	spec.Resolution = model.ResolutionDNS
	r.Spec = spec
	return r
}

// nackHTTP2 NACKs clusters that speak it.
func nackHTTP2(r xdsclient.Resource) string {
	if cluster, ok := r.Content.(*clusterv3.Cluster); ok && len(cluster.GetTypedExtensionProtocolOptions()) > 0 {
		return "it speaks HTTP2"
	}
	return ""
}

// endpoint is an endpoint that came with a service of the source "registry".
func endpoint(namespace, host, name, address string) model.Record {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "registry", Namespace: namespace, Name: host}}
	return model.Record{
		Ref:   model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "registry", Namespace: namespace, Name: host + "/" + name}},
		Owner: owner, Spec: model.Endpoint{Address: address},
	}
}

// clusterOf is the name of the cluster of a host.
func clusterOf(host string) string { return "outbound|80||" + host }

func clustersOf(hosts ...string) []string {
	names := make([]string, len(hosts))
	for i, host := range hosts {
		names[i] = clusterOf(host)
	}
	return names
}

// addresses lists where the load assignment of a name leads; nil if the client
// holds none.
func addresses(s *xdsclient.State, name string) []string {
	r, ok := s.Get(eds, name)
	if !ok {
		return nil
	}
	return addressesOf(r)
}

func addressesOf(r xdsclient.Resource) []string {
	list := []string{}
	for _, group := range r.Content.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			list = append(list, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return list
}

// weightOf is the weight of the one endpoint of a load assignment.
func weightOf(s *xdsclient.State, name string) uint32 {
	r, ok := s.Get(eds, name)
	if !ok {
		return 0
	}
	for _, group := range r.Content.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			return e.GetLoadBalancingWeight().GetValue()
		}
	}
	return 0
}

package envoy_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// view is clusters by name.
type view map[string]proxy.Cluster

// clusterName is that of a service port, as Istio names it.
func clusterName(host string, port uint32) string { return fmt.Sprintf("outbound|%d||%s", port, host) }

// expected is what an Envoy of the namespace shop should hold, by the documents:
// docs/configuration.md, "What clients see".
func (f *folder) expected() view { return expected(f.objects()) }

func expected(objects []object) view {
	want, home := view{}, map[string]bool{}
	for _, o := range objects {
		s, ok := o.(service)
		if !ok || !s.visible() {
			continue
		}
		own := cmp.Or(s.Namespace, shop) == shop
		for _, host := range s.Spec.Hosts {
			name := strings.ToLower(host)
			if !own && (home[name] || strings.HasSuffix(name, "."+shop+".svc.cluster.local")) {
				continue // its own namespace is preferred, and owns the names that name it
			}
			home[name] = home[name] || own
			for _, p := range s.Spec.Ports {
				want[clusterName(name, p.Number)] = s.cluster(host, p, s.endpoints(objects))
			}
		}
	}
	return want
}

func (s service) cluster(host string, p port, endpoints []endpoint) proxy.Cluster {
	c := spokenTo(p.Protocol)
	for _, e := range endpoints {
		if at, ok := e.at(p); ok {
			c.Endpoints = append(c.Endpoints, at)
		}
	}
	c.Type = discovery(s.Spec.Resolution, len(c.Endpoints))
	switch c.Type {
	case "ORIGINAL_DST":
		if p.TargetPort != p.Number {
			c.Override = p.TargetPort
		}
		c.Endpoints = nil
	case "STRICT_DNS", "LOGICAL_DNS":
		if len(endpoints) == 0 && s.Spec.Selector == nil {
			c.Endpoints = []proxy.Endpoint{{Address: host, Port: cmp.Or(p.TargetPort, p.Number), Weight: 1}}
			c.Type = discovery(s.Spec.Resolution, 1)
		}
	}
	slices.SortFunc(c.Endpoints, proxy.CompareEndpoints)
	return c
}

// spokenTo is a cluster of which only the protocol is known.
func spokenTo(protocol string) proxy.Cluster {
	return proxy.Cluster{
		HTTP2:    slices.Contains([]string{"HTTP2", "GRPC", "GRPC-WEB"}, strings.ToUpper(protocol)),
		AsSpoken: protocol == "",
	}
}

// discovery is the type of the cluster for a resolution.
func discovery(resolution string, endpoints int) string {
	switch {
	case resolution == "NONE":
		return "ORIGINAL_DST"
	case resolution == "DNS_ROUND_ROBIN" && endpoints == 1:
		return "LOGICAL_DNS"
	case resolution == "DNS", resolution == "DNS_ROUND_ROBIN":
		return "STRICT_DNS"
	default:
		return "EDS"
	}
}

// at is where an endpoint serves a port of its service. Without an address it
// is behind a gateway, which nothing leads to yet.
func (e endpoint) at(p port) (proxy.Endpoint, bool) {
	at := proxy.Endpoint{
		Address: e.Address, Port: cmp.Or(e.Ports[p.Name], p.TargetPort, p.Number),
		Weight: cmp.Or(e.Weight, 1), Locality: e.Locality,
	}
	if path, isSocket := strings.CutPrefix(e.Address, "unix://"); isSocket {
		at.Address, at.Port = path, 0
	}
	if ip, err := netip.ParseAddr(at.Address); err == nil {
		at.Address = ip.Unmap().String()
	}
	return at, e.Address != ""
}

// resolvedAt leaves IPv6 addresses out of the clusters of names of an Envoy with IPv4 alone.
func (v view) resolvedAt(own string) view {
	if strings.Contains(own, ":") {
		return v
	}
	part := maps.Clone(v)
	for name, c := range v {
		if c.Type == "STRICT_DNS" || c.Type == "LOGICAL_DNS" {
			c.Endpoints = slices.DeleteFunc(slices.Clone(c.Endpoints), func(e proxy.Endpoint) bool { return strings.Contains(e.Address, ":") })
			if len(c.Endpoints) == 0 {
				c.Type = "STRICT_DNS"
			}
			part[name] = c
		}
	}
	return part
}

// of is the part of a view that hosts have in it.
func (v view) of(hosts map[string]bool) view {
	part := view{}
	for name, c := range v {
		if _, host, _ := strings.Cut(name, "||"); hosts[host] {
			part[name] = c
		}
	}
	return part
}

// differs says in which clusters another view differs, and how in one of them.
func (v view) differs(got view) error {
	var names []string
	for name, want := range v {
		if c, found := got[name]; !found || !equal(want, c) {
			names = append(names, name)
		}
	}
	for name := range got {
		if _, wanted := v[name]; !wanted {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	const shown = 10
	slices.Sort(names)
	example := names[0]
	return fmt.Errorf("of %d wanted and %d found clusters %d differ: %v; of the first (-want +got):\n%s",
		len(v), len(got), len(names), names[:min(len(names), shown)], gocmp.Diff(lookUp(v, example), lookUp(got, example)))
}

func equal(a, b proxy.Cluster) bool {
	return a.Type == b.Type && a.HTTP2 == b.HTTP2 && a.AsSpoken == b.AsSpoken && a.Override == b.Override && slices.Equal(a.Endpoints, b.Endpoints)
}

// lookUp is nil if there is no such cluster.
func lookUp(v view, name string) *proxy.Cluster {
	if c, found := v[name]; found {
		return &c
	}
	return nil
}

// subset is one that the configuration says hosts of a domain have. The zero value is none.
type subset struct {
	name, domain string
	labels       map[string]string
}

// String is what outputs.xds.envoy.hosts says of it.
func (s subset) String() string {
	var labels []string
	for key, value := range s.labels {
		labels = append(labels, fmt.Sprintf("%s: %q", key, value))
	}
	return fmt.Sprintf("{host: %q, subsets: [{name: %s, labels: {%s}}]}", "*."+s.domain, s.name, strings.Join(labels, ", "))
}

// expected are its clusters, by docs/reference/envoy.md, "Subsets".
func (s subset) expected(objects []object) view {
	of := view{}
	if s.name == "" {
		return of
	}
	var narrowed []object
	for _, o := range objects {
		whole, ok := o.(service)
		if !ok {
			continue
		}
		part := whole
		part.Spec.Hosts = slices.DeleteFunc(slices.Clone(whole.Spec.Hosts), func(host string) bool { return !strings.HasSuffix(host, "."+s.domain) })
		part.Spec.Selector = &selector{} // so that nobody resolves the host for want of endpoints
		part.Spec.Endpoints = slices.DeleteFunc(whole.endpoints(objects), func(e endpoint) bool { return !hasAll(e.Labels, s.labels) })
		narrowed = append(narrowed, part)
	}
	for name, c := range expected(narrowed) {
		if c.Type != "ORIGINAL_DST" {
			of[strings.Replace(name, "||", "|"+s.name+"|", 1)] = c
		}
	}
	return of
}

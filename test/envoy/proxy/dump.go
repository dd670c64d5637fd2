package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Cluster is what Envoy does with a cluster that came over ADS.
type Cluster struct {
	Type      string // of discovery: EDS, STRICT_DNS, LOGICAL_DNS, ORIGINAL_DST
	HTTP2     bool   // to the endpoints
	AsSpoken  bool   // to the endpoints what the client speaks
	Override  uint32 // the port that an ORIGINAL_DST cluster goes to; 0 for the original one
	Endpoints []Endpoint
}

// Endpoint is one of a load assignment: of EDS, or of names to resolve.
type Endpoint struct {
	Address  string // or the path of a unix socket
	Port     uint32
	Weight   uint32
	Locality string // region/zone/subzone
	Health   string // empty if it may serve
}

// CompareEndpoints orders endpoints.
func CompareEndpoints(a, b Endpoint) int {
	return cmp.Or(strings.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), strings.Compare(a.Locality, b.Locality))
}

// The shapes of /config_dump, as far as they are read.
type (
	dynamicCluster struct {
		Version string `json:"version_info"`
		Cluster struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			CustomType struct {
				Config struct {
					Single bool `json:"all_addresses_in_single_endpoint"`
				} `json:"typed_config"`
				Name string `json:"name"`
			} `json:"cluster_type"`
			LoadAssignment assignment                     `json:"load_assignment"`
			Options        map[string]httpProtocolOptions `json:"typed_extension_protocol_options"`
			OriginalDST    struct {
				Override uint32 `json:"upstream_port_override"`
			} `json:"original_dst_lb_config"`
		} `json:"cluster"`
	}
	httpProtocolOptions struct {
		Explicit struct {
			HTTP2 any `json:"http2_protocol_options"`
		} `json:"explicit_http_config"`
		AsSpoken any `json:"use_downstream_protocol_config"`
	}
	dynamicEndpoints struct {
		Config assignment `json:"endpoint_config"`
	}
	assignment struct {
		Cluster string     `json:"cluster_name"`
		Groups  []locality `json:"endpoints"`
	}
	locality struct {
		Locality struct {
			Region  string `json:"region"`
			Zone    string `json:"zone"`
			SubZone string `json:"sub_zone"`
		} `json:"locality"`
		Endpoints []struct {
			Endpoint struct {
				Address address `json:"address"`
			} `json:"endpoint"`
			Health string `json:"health_status"`
			Weight uint32 `json:"load_balancing_weight"`
		} `json:"lb_endpoints"`
	}
	address struct {
		Socket struct {
			Address string `json:"address"`
			Port    uint32 `json:"port_value"`
		} `json:"socket_address"`
		Pipe struct {
			Path string `json:"path"`
		} `json:"pipe"`
	}
)

// Clusters are the active clusters that came over ADS, by name.
func (p *Proxy) Clusters(ctx context.Context) (map[string]Cluster, error) {
	clusters, endpoints, err := p.dump(ctx)
	if err != nil {
		return nil, err
	}
	resolved := map[string]assignment{}
	for _, e := range endpoints {
		resolved[e.Config.Cluster] = e.Config
	}
	found := make(map[string]Cluster, len(clusters))
	for _, d := range clusters {
		c := Cluster{Type: d.discovery(), Override: d.Cluster.OriginalDST.Override}
		for _, o := range d.Cluster.Options {
			c.HTTP2, c.AsSpoken = o.Explicit.HTTP2 != nil, o.AsSpoken != nil
		}
		switch c.Type {
		case "EDS":
			c.Endpoints = resolved[d.Cluster.Name].list()
		case "STRICT_DNS", "LOGICAL_DNS":
			c.Endpoints = d.Cluster.LoadAssignment.list()
		}
		found[d.Cluster.Name] = c
	}
	return found, nil
}

// discovery is the type of a cluster, also of one that is configured as an extension.
func (d *dynamicCluster) discovery() string {
	switch {
	case d.Cluster.CustomType.Name != "envoy.cluster.dns":
		return d.Cluster.Type
	case d.Cluster.CustomType.Config.Single:
		return "LOGICAL_DNS"
	default:
		return "STRICT_DNS"
	}
}

// Versions are those of the active clusters, by name.
func (p *Proxy) Versions(ctx context.Context) (map[string]string, error) {
	clusters, _, err := p.dump(ctx)
	versions := make(map[string]string, len(clusters))
	for _, d := range clusters {
		versions[d.Cluster.Name] = d.Version
	}
	return versions, err
}

// Resolved is how many endpoints Envoy has for each cluster, of whatever type.
func (p *Proxy) Resolved(ctx context.Context) (map[string]int, error) {
	_, endpoints, err := p.dump(ctx)
	found := map[string]int{}
	for _, e := range endpoints {
		found[e.Config.Cluster] = len(e.Config.list())
	}
	return found, err
}

// ResolvedTo are the addresses that Envoy has for a cluster, of whatever type.
func (p *Proxy) ResolvedTo(ctx context.Context, cluster string) (addresses []string, err error) {
	_, endpoints, err := p.dump(ctx)
	for _, e := range endpoints {
		if e.Config.Cluster != cluster {
			continue
		}
		for _, at := range e.Config.list() {
			addresses = append(addresses, at.Address)
		}
	}
	return addresses, err
}

// Endpoints are those of one cluster, of which Envoy says less than of all.
func (p *Proxy) Endpoints(ctx context.Context, cluster string) ([]Endpoint, error) {
	return p.endpoints(ctx, "^"+regexp.QuoteMeta(cluster)+"$")
}

// EndpointsOf are those of all clusters of a host.
func (p *Proxy) EndpointsOf(ctx context.Context, host string) ([]Endpoint, error) {
	return p.endpoints(ctx, `.*[|]`+regexp.QuoteMeta(host))
}

func (p *Proxy) endpoints(ctx context.Context, clusters string) (list []Endpoint, err error) {
	found, err := dumped[dynamicEndpoints](ctx, p, "dynamic_endpoint_configs&include_eds&name_regex="+url.QueryEscape(clusters))
	for _, e := range found {
		list = append(list, e.Config.list()...)
	}
	return list, err
}

func (p *Proxy) dump(ctx context.Context) (clusters []dynamicCluster, endpoints []dynamicEndpoints, err error) {
	if clusters, err = dumped[dynamicCluster](ctx, p, "dynamic_active_clusters"); err != nil {
		return nil, nil, err
	}
	endpoints, err = dumped[dynamicEndpoints](ctx, p, "dynamic_endpoint_configs&include_eds")
	return clusters, endpoints, err
}

func dumped[T any](ctx context.Context, p *Proxy, resource string) ([]T, error) {
	var page struct{ Configs []T }
	err := p.decode(ctx, "/config_dump?resource="+resource, &page)
	return page.Configs, err
}

// Unsettled says what Envoy still waits for: clusters that warm up, and what a
// start would wait for.
func (p *Proxy) Unsettled(ctx context.Context) error {
	warming, err := dumped[dynamicCluster](ctx, p, "dynamic_warming_clusters")
	if err != nil {
		return err
	}
	if len(warming) > 0 {
		return fmt.Errorf("%d clusters are warming, %s among them", len(warming), warming[0].Cluster.Name)
	}
	const gauge = "cluster_manager.warming_clusters"
	stats, err := p.Stats(ctx, "^"+gauge+"$")
	if err != nil {
		return err
	}
	if n, found := stats[gauge]; n > 0 || !found {
		return fmt.Errorf("%s is %d", gauge, n)
	}
	const listeners = "listener_manager.total_listeners_warming"
	if stats, err = p.Stats(ctx, "^"+listeners+"$"); err != nil {
		return err
	}
	if n, found := stats[listeners]; n > 0 || !found {
		return fmt.Errorf("%s is %d", listeners, n)
	}
	var waiting struct {
		Targets []any `json:"unready_targets_dumps"`
	}
	if err := p.decode(ctx, "/init_dump", &waiting); err != nil {
		return err
	}
	if len(waiting.Targets) > 0 {
		return fmt.Errorf("it waits for %v", waiting.Targets)
	}
	return nil
}

// TimedOut says what Envoy has ever begun to use, or to do without, because its time
// was over.
func (p *Proxy) TimedOut(ctx context.Context) error {
	stats, err := p.Stats(ctx, `init_fetch_timeout$`)
	if err != nil {
		return err
	}
	if _, found := stats["cluster_manager.cds.init_fetch_timeout"]; !found {
		return errors.New("it does not count what it waited for in vain")
	}
	for name, n := range stats {
		if n > 0 {
			return fmt.Errorf("%s is %d\n%s", name, n, p.Log())
		}
	}
	return nil
}

// Rejected says what Envoy has ever rejected.
func (p *Proxy) Rejected(ctx context.Context) error {
	stats, err := p.Stats(ctx, `update_rejected$`)
	if err != nil {
		return err
	}
	if _, found := stats["cluster_manager.cds.update_rejected"]; !found {
		return errors.New("it does not count what it rejects")
	}
	for name, n := range stats {
		if n > 0 {
			return fmt.Errorf("%s is %d\n%s", name, n, p.Log())
		}
	}
	return nil
}

// list is flat, and in order.
func (a assignment) list() []Endpoint {
	var list []Endpoint
	for _, g := range a.Groups {
		place := strings.TrimRight(strings.Join([]string{g.Locality.Region, g.Locality.Zone, g.Locality.SubZone}, "/"), "/")
		for _, e := range g.Endpoints {
			at := Endpoint{Address: e.Endpoint.Address.Socket.Address, Port: e.Endpoint.Address.Socket.Port, Weight: e.Weight, Locality: place}
			if path := e.Endpoint.Address.Pipe.Path; path != "" {
				at.Address = path
			}
			if e.Health != "HEALTHY" && e.Health != "UNKNOWN" {
				at.Health = e.Health
			}
			list = append(list, at)
		}
	}
	slices.SortFunc(list, CompareEndpoints)
	return list
}

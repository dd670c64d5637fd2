package proxy

import "context"

// Routes are the versions of the route configurations that came over ADS, by name.
func (p *Proxy) Routes(ctx context.Context) (map[string]string, error) {
	found, err := dumped[struct {
		Version string `json:"version_info"`
		Routes  struct {
			Name string `json:"name"`
		} `json:"route_config"`
	}](ctx, p, "dynamic_route_configs")
	versions := make(map[string]string, len(found))
	for _, f := range found {
		versions[f.Routes.Name] = f.Version
	}
	return versions, err
}

// Hosts are the virtual hosts of a route configuration that came over ADS, by the names
// that Envoy has for them.
func (p *Proxy) Hosts(ctx context.Context, routes string) (names []string, err error) {
	type host struct {
		Name string `json:"name"`
	}
	found, err := dumped[struct {
		Config struct {
			Name  string `json:"name"`
			Hosts []host `json:"virtual_hosts"`
		} `json:"route_config"`
	}](ctx, p, "dynamic_route_configs")
	for _, f := range found {
		if f.Config.Name != routes {
			continue
		}
		for _, h := range f.Config.Hosts {
			names = append(names, h.Name)
		}
	}
	return names, err
}

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

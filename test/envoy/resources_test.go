package envoy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// holdings are what the admin API says that a client holds: versions by name, by type.
type holdings map[string]map[string]string

// holds reads them page by page. All of it has to be ACKed.
func (i *isthmus) holds(id string) (holdings, error) {
	h := holdings{"Cluster": {}, "ClusterLoadAssignment": {}, "LbEndpoint": {}, "Listener": {}, "RouteConfiguration": {}, "VirtualHost": {}}
	for from, pages := "", 0; pages == 0 || from != ""; pages++ {
		var page struct {
			Resources []struct{ Type, Name, Version, State, Reason string }
			Next      string
		}
		if err := i.ask("/api/v1/clients/"+url.PathEscape(id)+"/resources?limit=7&from="+from, &page); err != nil {
			return h, err
		}
		for _, r := range page.Resources {
			if r.State != "accepted" {
				return h, fmt.Errorf("%s %s is %s: %s", r.Type, r.Name, r.State, r.Reason)
			}
			if versions := h[r.Type[strings.LastIndexByte(r.Type, '.')+1:]]; versions != nil {
				versions[r.Name] = r.Version
			}
		}
		from = page.Next
	}
	return h, nil
}

// MustShowWhatEnvoysHold is that the admin API and Envoy's own dump agree: on the
// clusters, listeners and routes, with their versions, on the hosts of routes that go one by
// one, and on the clusters that have a load assignment. An Envoy over the state of the world knows no version of a cluster or route.
func (m *mesh) MustShowWhatEnvoysHold() {
	m.Helper()
	for _, p := range m.Proxies {
		await(m, "the admin API to show what "+p.Name+" holds", func() error { return m.shownOtherwise(p) })
	}
	m.MustNotHavePanicked()
}

// MustNotHavePanicked is that no Isthmus met a fault of its own, from which it has recovered.
func (m *mesh) MustNotHavePanicked() {
	m.Helper()
	for _, i := range m.Isthmuses {
		if !i.Running() {
			continue
		}
		if n := i.Metric("isthmus_panics_total", ""); n > 0 {
			m.Errorf("there were %v panics, which the log shows", n)
		}
	}
}

// nodeOf is the node id of an Envoy.
func nodeOf(p *proxy.Proxy) string {
	role := "router"
	if p.Config.Listeners || p.Redirected {
		role = "sidecar"
	}
	return role + "~" + cmp.Or(p.IP, "127.0.0.1") + "~" + p.Workload + ".shop~shop.svc.cluster.local"
}

func (m *mesh) shownOtherwise(p *proxy.Proxy) error {
	var shown holdings
	err := errors.New("no Isthmus runs")
	for _, i := range m.Isthmuses {
		if i.Running() && slices.Contains(p.ControlPlanes, i.XDS) && err != nil {
			shown, err = i.holds(nodeOf(p))
		}
	}
	if err != nil {
		return err
	}
	held, err := heldBy(m.Context(), p)
	if err != nil {
		return err
	}
	for kind, versions := range held {
		for name := range versions {
			said, found := shown[kind][name]
			if found && versionIsOfResponse(p, kind, name) {
				versions[name] = said
			}
		}
		if diff := gocmp.Diff(versions, shown[kind]); diff != "" {
			return fmt.Errorf("%ss of Envoy (-) and of the admin API (+):\n%s", kind, diff)
		}
	}
	if err := hostsShownOtherwise(m.Context(), p, shown); err != nil {
		return err
	}
	clusters, err := p.Clusters(m.Context())
	if err != nil {
		return err
	}
	assigned := map[string]bool{}
	for name, c := range clusters {
		if c.Type == "EDS" {
			assigned[name] = true
		}
	}
	said := map[string]bool{}
	for name := range shown["ClusterLoadAssignment"] {
		said[name] = true
	}
	if diff := gocmp.Diff(assigned, said); diff != "" {
		return fmt.Errorf("load assignments of Envoy (-) and of the admin API (+):\n%s", diff)
	}
	return nil
}

// versionIsOfResponse reports whether Envoy shows the version of the last response that a
// resource came in, or that hosts of a route configuration did.
func versionIsOfResponse(p *proxy.Proxy, kind, name string) bool {
	return !p.Delta && kind != "Listener" || kind == "RouteConfiguration" && strings.HasSuffix(name, hostsSuffix)
}

// hostsSuffix ends the names of route configurations whose hosts go one by one.
const hostsSuffix = ".hosts"

// hostsShownOtherwise compares the hosts of route configurations that have VHDS. Envoy
// shows them there, without versions. The admin API also has hosts of route configurations
// that Envoy has ceased to ask for: they are kept up to date until the stream ends.
func hostsShownOtherwise(ctx context.Context, p *proxy.Proxy, shown holdings) error {
	for routes := range shown["RouteConfiguration"] {
		if !strings.HasSuffix(routes, hostsSuffix) {
			continue
		}
		held, err := p.Hosts(ctx, routes)
		if err != nil {
			return err
		}
		held = slices.DeleteFunc(held, func(name string) bool { return !strings.HasPrefix(name, routes+"/") }) // that for all other requests
		slices.Sort(held)
		said := slices.Sorted(maps.Keys(shown["VirtualHost"]))
		said = slices.DeleteFunc(said, func(name string) bool { return !strings.HasPrefix(name, routes+"/") })
		if diff := gocmp.Diff(held, said, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("hosts of Envoy (-) and of the admin API (+):\n%s", diff)
		}
	}
	return nil
}

// heldBy is what Envoy's dump says of resources that have versions there.
func heldBy(ctx context.Context, p *proxy.Proxy) (holdings, error) {
	clusters, err := p.Versions(ctx)
	if err != nil {
		return nil, err
	}
	routes, err := p.Routes(ctx)
	if err != nil {
		return nil, err
	}
	listeners, err := p.Listeners(ctx)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for name, l := range listeners {
		if l.Version == "" {
			continue // it is being drained
		}
		if versions[name], err = versionOf(l.Content); err != nil {
			return nil, fmt.Errorf("listener %s: %w", name, err)
		}
	}
	return holdings{"Cluster": clusters, "RouteConfiguration": routes, "Listener": versions}, nil
}

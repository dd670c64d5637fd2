package envoy_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// holdings are what the admin API says that a client holds: versions by name.
type holdings struct{ clusters, assignments map[string]string }

// holds reads them page by page. All of it has to be ACKed.
func (i *isthmus) holds(id string) (holdings, error) {
	h := holdings{map[string]string{}, map[string]string{}}
	byType := map[string]map[string]string{"Cluster": h.clusters, "ClusterLoadAssignment": h.assignments}
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
			if versions := byType[r.Type[strings.LastIndexByte(r.Type, '.')+1:]]; versions != nil {
				versions[r.Name] = r.Version
			}
		}
		from = page.Next
	}
	return h, nil
}

// MustShowWhatEnvoysHold is that the admin API and Envoy's own dump agree: on the
// clusters, with their versions if Envoy takes changes, and on the clusters that have
// a load assignment.
func (m *mesh) MustShowWhatEnvoysHold() {
	m.Helper()
	for _, p := range m.Proxies {
		await(m, "the admin API to show what "+p.Name+" holds", func() error { return m.shownOtherwise(p) })
	}
}

func (m *mesh) shownOtherwise(p *proxy.Proxy) error {
	var shown holdings
	err := errors.New("no Isthmus runs")
	for _, i := range m.Isthmuses {
		if i.Running() && err != nil {
			shown, err = i.holds("router~127.0.0.1~" + p.Workload + ".shop~shop.svc.cluster.local")
		}
	}
	if err != nil {
		return err
	}
	versions, err := p.Versions(m.Context())
	if err != nil {
		return err
	}
	clusters, err := p.Clusters(m.Context())
	if err != nil {
		return err
	}
	if !p.Delta { // it shows the version of the response that brought each
		for name := range versions {
			versions[name] = shown.clusters[name]
		}
	}
	if diff := cmp.Diff(versions, shown.clusters); diff != "" {
		return fmt.Errorf("clusters of Envoy (-) and of the admin API (+):\n%s", diff)
	}
	assigned := map[string]bool{}
	for name, c := range clusters {
		if c.Type == "EDS" {
			assigned[name] = true
		}
	}
	said := map[string]bool{}
	for name := range shown.assignments {
		said[name] = true
	}
	if diff := cmp.Diff(assigned, said); diff != "" {
		return fmt.Errorf("load assignments of Envoy (-) and of the admin API (+):\n%s", diff)
	}
	return nil
}

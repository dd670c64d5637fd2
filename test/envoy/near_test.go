package envoy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestNearBackendsAreUsedUntilTheyFail has an Envoy in the zone of some backends. All
// its calls go there; once they are dead and ejected, those of the next zone answer all
// calls, and then those of another region.
func TestNearBackendsAreUsedUntilTheyFail(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		m.Envoy = "defaults: {outlierDetection: {consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}}"
		number := freePort(t)
		const host = "near.example.com"
		at := func(b *backend, locality string) endpoint {
			b.server.SetKeepAlivesEnabled(false) // so that no request meets a connection that is just being closed
			e := b.endpoint("main")
			e.Locality = locality
			return e
		}
		near := []*backend{startBackend(t, "near", "near-1"), startBackend(t, "near", "near-2")}
		same, far := startBackend(t, "same region", "same-region"), startBackend(t, "far", "far")
		m.Folder.write(t, "near", service{Spec: serviceSpec{
			Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: number, Name: "main", Protocol: "HTTP"}},
			Endpoints: []endpoint{at(near[0], "eu/a"), at(far, "us/a"), at(same, "eu/b"), at(near[1], "eu/a")},
		}})
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true, Flags: []string{"--locality", "eu/a"}})
		await(t, "the service to answer", func() error { return answers(t.Context(), number, host, "near") })
		calls := func(wanted ...string) error {
			for range 30 {
				if by, err := callHost(t.Context(), number, host); err != nil || !slices.Contains(wanted, by) {
					return fmt.Errorf("answered by %q, want %q: %w", by, wanted, err)
				}
			}
			return nil
		}
		if err := calls("near"); err != nil {
			t.Fatal(err)
		}
		near[0].Stop() // of half a zone Envoy has the next one help out
		await(t, "the rest of the zone to answer", func() error { return calls("near", "same region") })
		near[1].Stop()
		await(t, "the next zone to answer", func() error { return calls("same region") })
		same.Stop()
		await(t, "the other region to answer", func() error { return calls("far") })
		m.MustBeSettled()
	})
}

// TestSubsetsAnswerByTheirBackends has clusters of subsets lead to those backends alone
// that have their labels, now and after these changed.
func TestSubsetsAnswerByTheirBackends(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		m.Envoy = "hosts: [{host: sub.localhost, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}]"
		one, two := startBackend(t, "one", "one"), startBackend(t, "two", "two")
		publish := func(ofOne, ofTwo string) {
			labelled := func(b *backend, version string) endpoint {
				e := b.endpoint("http")
				e.Labels = map[string]string{"version": version}
				return e
			}
			m.Folder.write(t, "sub", service{Spec: serviceSpec{
				Hosts: []string{"sub.localhost"}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}},
				Endpoints: []endpoint{labelled(one, ofOne), labelled(two, ofTwo)},
			}})
		}
		publish("v1", "v2")
		m.Serve("")
		p := m.Connect(delta)
		// only awaits that of so many calls all are answered by some.
		only := func(subset string, want ...string) {
			t.Helper()
			await(t, subset+" to be answered by "+fmt.Sprint(want), func() error {
				got := map[string]bool{}
				for range 20 {
					by, err := callCluster(t.Context(), p, "outbound|80|"+subset+"|sub.localhost")
					if err != nil {
						return err
					}
					got[by] = true
				}
				for _, by := range want {
					delete(got, by)
				}
				if len(got) > 0 {
					return fmt.Errorf("answered by %v as well", got)
				}
				return nil
			})
		}
		only("v1", "one")
		only("v2", "two")
		only("", "one", "two")
		publish("v2", "v1")
		only("v1", "two")
		only("v2", "one")
		publish("v1", "v1")
		only("v1", "one", "two")
		await(t, "the subset without backends to answer nothing", func() error {
			if by, err := callCluster(t.Context(), p, "outbound|80|v2|sub.localhost"); err == nil {
				return fmt.Errorf("%s answers", by)
			}
			return nil
		})
		m.MustBeSettled()
	})
}

// callCluster calls a cluster of an Envoy, and says who answered.
func callCluster(ctx context.Context, p *proxy.Proxy, cluster string) (by string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("x-cluster", cluster)
	return callOnce(request)
}

// callHost calls a host at a port of loopback, and says who answered.
func callHost(ctx context.Context, number uint32, host string) (by string, err error) {
	return callHostOver(ctx, &http.Transport{DisableKeepAlives: true}, number, host)
}

// callHostOver is [callHost] over the connections of a transport.
func callHostOver(ctx context.Context, over *http.Transport, number uint32, host string) (by string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", number), http.NoBody)
	if err != nil {
		return "", err
	}
	request.Host = host
	return callOver(over, request)
}

func callOnce(request *http.Request) (by string, err error) {
	return callOver(&http.Transport{DisableKeepAlives: true}, request)
}

func callOver(over *http.Transport, request *http.Request) (by string, err error) {
	response, err := over.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.300s", response.Status, body)
	}
	return response.Header.Get(answeredBy), nil
}

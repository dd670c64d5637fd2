package istio_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestIstioSharesCallsAsAsked has the share of a registry go up, as the calls of a released
// Envoy behind istiod show. The backends of the two registries are in two zones, and the Envoy
// is in a third one. With the weights of ServiceEntry objects alone, istiod's default balancer
// gets near to the shares, which is logged; with DestinationRule objects they are exact. No
// call fails.
func TestIstioSharesCallsAsAsked(t *testing.T) {
	t.Parallel()
	s := startDivided(t)
	for _, way := range []string{"weights", "destinationRules"} {
		s.Restart(way)
		for _, percent := range []int{10, 50, 98} {
			s.Ask(way, percent)
			s.AwaitWeights(percent)
			if way == "destinationRules" {
				await(t, "Envoy to obey the weights exactly", func() error { return s.near(s.Calls(300), percent) })
			}
			got := s.Calls(sharedCalls)
			t.Logf("%s: of %d %% asked, %.1f %% of %d calls", way, percent, got, sharedCalls)
			if way == "destinationRules" {
				if err := s.near(got, percent); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestRulesOfOthersKeepTheirHosts has somebody else write a DestinationRule for a host with
// shares: that of Isthmus goes, the other one gets an Event with the reason, and once it is
// gone Isthmus writes its own again.
func TestRulesOfOthersKeepTheirHosts(t *testing.T) {
	t.Parallel()
	s := startDivided(t)
	s.Restart("destinationRules")
	written := func(want bool) {
		t.Helper()
		await(t, fmt.Sprint("a DestinationRule: ", want), func() error {
			rules, err := s.client.List(t.Context(), cluster.DestinationRules, s.namespace, managedBy)
			if err == nil && (len(rules) == 1) != want {
				err = fmt.Errorf("there are %d", len(rules))
			}
			return err
		})
	}
	written(true)
	s.Apply(cluster.DestinationRules, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: theirs, namespace: %s}
spec: {host: "*.example", trafficPolicy: {tls: {mode: SIMPLE}}}
`, s.namespace))
	written(false)
	await(t, "an Event about the rule of another owner", func() error {
		list, err := s.client.List(t.Context(), eventsOf, s.namespace, "")
		for _, e := range list {
			if e.Object["reason"] == "HostTaken" && strings.Contains(fmt.Sprint(e.Object["message"]), "DestinationRule "+s.namespace+"/"+s.host+" is not written: ") {
				return nil
			}
		}
		return fmt.Errorf("there are %d others (%w)", len(list), err)
	})
	if err := s.client.Delete(t.Context(), cluster.DestinationRules, s.namespace, "theirs"); err != nil {
		t.Fatal(err)
	}
	written(true)
}

// sharedCalls is the number of calls by which a share is measured, and sharers is how many
// are made at a time.
const (
	sharedCalls = 3000
	sharers     = 10
)

// divided is a host that two registries have, and its Isthmus.
type divided struct {
	*sidecars
	*isthmus

	namespace, host, kubeconfig string
	folders                     [2]string
	caller                      *http.Client
}

// startDivided starts the backends, and an Envoy that an istiod tells of them. Isthmus is not
// started yet.
func startDivided(t *testing.T) *divided {
	t.Helper()
	s := newDivided(t, connect(t, shared), "divided")
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := s.server.WriteKubeconfig(s.kubeconfig, s.namespace, group); err != nil {
		t.Fatal(err)
	}
	s.Follow(istiod)
	return s
}

// newDivided starts the backends, and writes the folders of the registries. The Envoy of the
// namespace has its services alone: one that starts amid the clusters of other tests, which come
// and go, may never have all of them at a time, and then does not get ready.
func newDivided(t *testing.T, a *api, name string) *divided {
	t.Helper()
	s := &divided{sidecars: &sidecars{api: a}, namespace: a.NewNamespace(name), caller: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sharers}}}
	s.host = "reviews." + s.namespace + ".example"
	t.Cleanup(s.caller.CloseIdleConnections)
	s.Apply(cluster.Sidecars, `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: own, namespace: `+s.namespace+`}
spec: {egress: [{hosts: ["./*"]}]}
`)
	for i, registry := range []struct {
		name, zone       string
		backends, weight int
	}{{"legacy", "eu/a", 2, 1}, {"east", "us/b", 5, 20}} {
		s.folders[i] = t.TempDir()
		var endpoints []string
		for n := range registry.backends {
			at := answering(t, fmt.Sprintf("127.0.%d.%d:0", i+1, n+1), registry.name)
			endpoints = append(endpoints, fmt.Sprintf("{address: %s, ports: {http: %d}, locality: %s, weight: %d}", at.Addr(), at.Port(), registry.zone, registry.weight*(n+1)))
		}
		text := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: %s}
spec:
  hosts: [%s]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%s]
`, s.namespace, s.host, strings.Join(endpoints, ", "))
		if err := os.WriteFile(filepath.Join(s.folders[i], "reviews.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Follow starts an Envoy behind an istiod.
func (s *divided) Follow(i *cluster.Istiod) {
	s.api.t.Helper()
	ctx, cancel := context.WithTimeout(s.api.t.Context(), until.Patience)
	defer cancel()
	p, err := shared.StartEnvoy(ctx, i, cluster.Sidecar{Workload: s.namespace, Namespace: s.namespace, Delta: true, Flags: []string{"--locality", "eu/c"}})
	if err != nil {
		s.api.t.Fatal(err)
	}
	s.istiod, s.proxies = i, []*proxy.Proxy{p}
}

// answering starts a backend that answers with a name.
func answering(t *testing.T, address, name string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	backend := &httptest.Server{Listener: l, Config: &http.Server{ //nolint:gosec // it answers to the test alone
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }),
	}}
	backend.Start()
	t.Cleanup(backend.Close)
	return netip.MustParseAddrPort(l.Addr().String())
}

// Restart starts an Isthmus that writes shares in a way, in the place of the one before.
func (s *divided) Restart(way string) {
	s.api.t.Helper()
	if s.isthmus != nil {
		s.Kill()
	}
	s.isthmus = serveConfig(s.api.t, s.namespace, s.config(way, 50))
}

// Ask changes the share of the second registry.
func (s *divided) Ask(way string, percent int) { s.Configure(s.config(way, percent)) }

func (s *divided) config(way string, percent int) string {
	return s.divide(percent, "") + fmt.Sprintf(`
outputs:
  istio:
    kubeconfig: %[1]s
    debounce: {quiet: 50ms, max: 500ms}
    leaderElection: {enabled: false, name: %[2]s}
    shares: %[3]s
`, s.kubeconfig, s.namespace, way)
}

// divide returns the configuration but for outputs, with more sources.
func (s *divided) divide(percent int, more string) string {
	return fmt.Sprintf(`
instance: %[1]s
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
splits:
- {host: %[4]s, namespace: %[1]s, backends: [{source: legacy, weight: %[5]d}, {source: east, weight: %[6]d}]}
sources:
- {name: legacy, required: true, localAddresses: allow, file: {path: %[2]s}}
- {name: east, required: true, localAddresses: allow, file: {path: %[3]s}}
%[7]s`, s.namespace, s.folders[0], s.folders[1], s.host, 100-percent, percent, more)
}

// cluster is istiod's name for the port of the host.
func (s *divided) cluster() string { return "outbound|80||" + s.host }

// AwaitWeights waits until Envoy has the weights of a share.
func (s *divided) AwaitWeights(percent int) {
	s.api.t.Helper()
	await(s.api.t, fmt.Sprintf("weights of %d %%", percent), func() error {
		clusters, err := s.proxies[0].Clusters(s.api.t.Context())
		if err != nil {
			return err
		}
		sums := map[string]float64{}
		for _, e := range clusters[s.cluster()].Endpoints {
			sums[strings.TrimRight(e.Locality, "/")] += float64(e.Weight)
		}
		return s.near(100*sums["us/b"]/(sums["us/b"]+sums["eu/a"]), percent)
	})
}

// near returns an error unless a share is within 2 points of the one that was asked for.
func (s *divided) near(got float64, percent int) error {
	if math.Abs(got-float64(percent)) <= 2 {
		return nil
	}
	return fmt.Errorf("the share is %.1f %%, and %d %% was asked for", got, percent)
}

// Calls makes calls, all of which have to be answered, and returns the share of the second
// registry in percent.
func (s *divided) Calls(n int) float64 {
	s.api.t.Helper()
	var answered [sharers]map[string]int
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for i := range sharers {
		answered[i] = map[string]int{}
		all.Go(func() {
			for range n / sharers {
				by, err := s.call()
				if err != nil {
					failed.Store(&err)
				}
				answered[i][by]++
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		s.api.t.Fatal("a call failed: ", *err)
	}
	sum := 0
	for _, one := range answered {
		sum += one["east"]
	}
	return 100 * float64(sum) / float64(n)
}

// call returns the registry of the backend that answers.
func (s *divided) call() (string, error) {
	request, err := http.NewRequestWithContext(s.api.t.Context(), http.MethodGet, "http://"+s.proxies[0].Address, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Cluster", s.cluster())
	answer, err := s.caller.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	by, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, by)
	}
	return string(by), err
}

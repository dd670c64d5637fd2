package kubernetes_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

var (
	crowdServices  = flag.Int("crowd", 5000, "Services of the cluster that BenchmarkBeside measures")
	crowdEndpoints = flag.Int("endpoints", 100_000, "endpoints of it")
	changes        = flag.Int("changes", 100, "changes of one endpoint")
	restarted      = flag.Int("restarted", 1000, "pods of the service that is restarted")
)

// The backends that Envoys really call, in turns.
var turns = [2]string{"10.77.0.1", "10.77.0.2"}

// BenchmarkBeside measures Isthmus and istiod on the same API server, one after the
// other: a cluster of many Services is read, one endpoint changes again and again, and
// all pods of a Service are restarted, one after the other. An Envoy has the namespace
// of both services, by a Sidecar. For example:
//
//	go test -run '^$' -bench Beside -benchtime 1x -timeout 30m .
func BenchmarkBeside(b *testing.B) {
	if separately(b) {
		return
	}
	for _, address := range turns {
		listen(b, address, address+":8080")
	}
	c := own(b)
	w := &crowd{b: b, client: connect(b, c), cluster: c}
	began := time.Now()
	w.write()
	b.Logf("%d Services with %d endpoints were written in %.0f s", *crowdServices, *crowdEndpoints, time.Since(began).Seconds())
	for _, start := range []func() plane{w.isthmus, w.istiod} {
		w.measure(start)
	}
}

// plane is a control plane that reads the cluster.
type plane struct {
	name    string
	process *cluster.Process
	xds     string
	primed  time.Duration
	stop    func()
}

// crowd is a cluster of many Services.
type crowd struct {
	b       *testing.B
	client  *cluster.Client
	cluster *cluster.Cluster
}

func (w *crowd) must(err error) {
	w.b.Helper()
	if err != nil {
		w.b.Fatal(err)
	}
}

// write writes all Services, those that are measured in a namespace of their own.
func (w *crowd) write() {
	w.must(w.client.Namespace(w.b.Context(), "shop"))
	w.must(w.client.Namespace(w.b.Context(), "rest"))
	w.must(w.client.Apply(w.b.Context(), cluster.Sidecars, object(w.b,
		`{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {namespace: shop, name: own}, spec: {egress: [{hosts: ["./*"]}]}}`)))
	w.service("shop", "one", turns[0])
	w.service("shop", "many", w.pods(0)...)
	each := (*crowdEndpoints - *restarted) / *crowdServices
	var writing sync.WaitGroup
	limit := make(chan struct{}, 8)
	for n := range *crowdServices {
		limit <- struct{}{}
		writing.Go(func() {
			defer func() { <-limit }()
			var addresses []string
			for e := range each {
				addresses = append(addresses, addressOf(n*each+e))
			}
			w.service("rest", fmt.Sprintf("s-%d", n), addresses...)
		})
	}
	writing.Wait()
}

func addressOf(n int) string {
	return netip.AddrFrom4([4]byte{10, byte(128 + n>>16), byte(n >> 8), byte(n)}).String()
}

// pods are those of the large service in a generation.
func (w *crowd) pods(generation int) (list []string) {
	for n := range *restarted {
		list = append(list, netip.AddrFrom4([4]byte{10, byte(90 + generation%2), byte(n >> 8), byte(n)}).String())
	}
	return list
}

// service writes a Service with slices of 100.
func (w *crowd) service(namespace, name string, addresses ...string) {
	w.must(w.client.Apply(w.b.Context(), services, object(w.b,
		`{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s}, spec: {ports: [{name: http, port: 80, targetPort: 8080}]}}`, namespace, name)))
	for at := 0; at < len(addresses); at += 100 {
		w.slice(namespace, name, at, addresses[at:min(at+100, len(addresses))])
	}
}

func (w *crowd) slice(namespace, name string, at int, addresses []string) {
	var endpoints []string
	for _, a := range addresses {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s]}", a))
	}
	w.must(w.client.Apply(w.b.Context(), slicesOf, object(w.b, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, `+
		`metadata: {namespace: %[1]s, name: %[2]s-%[3]d, labels: {kubernetes.io/service-name: %[2]s}}, ports: [{name: http, port: 8080}], endpoints: [%[4]s]}`,
		namespace, name, at, strings.Join(endpoints, ", "))))
}

func (w *crowd) isthmus() plane {
	i := newIsthmus(w.b, w.b.TempDir(), fmt.Sprintf("sources: [{name: here, kubernetes: {kubeconfig: %s}}]\noutputs: {xds: {listen: '127.0.0.1:0'}}\n"+
		"admin: {listen: '127.0.0.1:0'}", kubeconfig(w.b, w.cluster.API, cluster.Admin)))
	began := time.Now()
	i.start()
	return plane{name: "isthmus", process: i.Process, xds: i.xds, primed: time.Since(began), stop: i.Kill}
}

func (w *crowd) istiod() plane {
	began := time.Now()
	i, err := w.cluster.StartIstiodAs(w.b.Context(), cluster.Setting{Registries: "Kubernetes"})
	w.must(err)
	return plane{name: "istiod", process: i.Process, xds: i.XDS, primed: time.Since(began), stop: i.Kill}
}

// measure measures one control plane.
func (w *crowd) measure(start func() plane) {
	w.service("shop", "one", turns[0])
	for at, pods := 0, w.pods(0); at < len(pods); at += 100 {
		w.slice("shop", "many", at, pods[at:min(at+100, len(pods))])
	}
	p := start()
	defer p.stop()
	envoy := startEnvoy(w.b, p.xds, proxy.Config{Delta: true, ClustersOnly: true, Istiod: p.name == "istiod", Workload: p.name})
	await(w.b, "the clusters in Envoy", func() error { return w.lacks(envoy, w.pods(0)) })
	cpu := probe.CPU(w.b, p.process.ID())
	w.b.Logf("%s: primed after %.2f s, with %.2f s of CPU; resident %.0f MB, at most %.0f MB", p.name, p.primed.Seconds(), cpu.Seconds(),
		probe.Memory(w.b, p.process.ID(), "VmRSS")/1e6, probe.Memory(w.b, p.process.ID(), "VmHWM")/1e6)
	took := w.change(envoy)
	w.b.Logf("%s: one endpoint changes %d times: p50 %.0f ms, p99 %.0f ms, at most %.0f ms until a call is answered by it; %.1f ms of CPU for each", p.name, len(took),
		ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]), ms(probe.CPU(w.b, p.process.ID())-cpu)/float64(len(took)))
	cpu = probe.CPU(w.b, p.process.ID())
	began := time.Now()
	written := w.restart(1)
	await(w.b, "the new pods in Envoy", func() error { return w.lacks(envoy, w.pods(1)) })
	w.b.Logf("%s: %d pods restarted in %.1f s; Envoy had the last %.0f ms after it was written; %.2f s of CPU; resident %.0f MB", p.name, *restarted, written.Seconds(),
		ms(time.Since(began)-written), (probe.CPU(w.b, p.process.ID()) - cpu).Seconds(), probe.Memory(w.b, p.process.ID(), "VmRSS")/1e6)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// change gives a service another endpoint, again and again, and says how long each took.
func (w *crowd) change(envoy *proxy.Proxy) (took []time.Duration) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	call := callsOf(envoy, "outbound|80||one.shop.svc.cluster.local", client)
	for n := range *changes {
		to := turns[(n+1)%2]
		began := time.Now()
		w.slice("shop", "one", 0, []string{to})
		await(w.b, "a call to be answered by "+to, func() error {
			ctx, cancel := context.WithTimeout(w.b.Context(), 10*time.Second)
			defer cancel()
			by, err := call(ctx)
			if err == nil && by != to {
				err = fmt.Errorf("%s answers", by)
			}
			return err
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

// restart replaces all pods of the large service, ten at a time, as a rolling restart does.
func (w *crowd) restart(generation int) time.Duration {
	began := time.Now()
	pods, next := w.pods(generation-1), w.pods(generation)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for at := 0; at < len(pods); at += 10 {
		copy(pods[at:at+10], next[at:at+10])
		first := at / 100 * 100
		w.slice("shop", "many", first, pods[first:min(first+100, len(pods))])
		<-pace.C
	}
	return time.Since(began)
}

// lacks says which pods of the large service an Envoy lacks, or has and should not.
func (w *crowd) lacks(p *proxy.Proxy, want []string) error {
	list, err := p.Endpoints(w.b.Context(), "outbound|80||many.shop.svc.cluster.local")
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, e := range list {
		has[e.Address] = true
	}
	if len(has) != len(want) {
		return fmt.Errorf("it has %d", len(has))
	}
	for _, address := range want {
		if !has[address] {
			return fmt.Errorf("it lacks %s", address)
		}
	}
	return nil
}

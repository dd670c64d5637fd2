package kubernetes_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const (
	migrationPage = "docs/migrate-a-service.md"
	orders        = "orders.shop.svc.cluster.local"
	center        = "127.0.0.1:30100"
)

// The instances of orders, in the old registry and in the new one.
var (
	oldInstances = []string{"10.1.0.1:9080", "10.1.0.2:9080"}
	newInstances = []string{"10.2.0.1:9080", "10.2.0.2:9080", "10.2.0.3:9080"}
)

const ordersSlice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
metadata: {namespace: shop, name: orders-1, labels: {kubernetes.io/service-name: orders}}, ports: [{name: http-9080, port: 9080}],
endpoints: [{addresses: [10.2.0.1], conditions: {ready: %[1]t}}, {addresses: [10.2.0.2], conditions: {ready: %[1]t}}, {addresses: [10.2.0.3], conditions: {ready: %[1]t}}]}`

// TestMigrationOfAServiceIsFollowed does what the page says, command by command. After each
// step the calls of each client are divided as the table of the page says, and no call fails.
func TestMigrationOfAServiceIsFollowed(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	m := newMove(t)
	stages := []struct {
		title         string
		before, after func()
	}{
		{title: "Before you begin"},
		{title: "1. Describe the service", after: m.startCallers},
		{title: "2. Read the new registry at 0 %", before: m.deploy},
		{title: "3. 1 %"},
		{title: "What to watch"},
		{title: "4. 10 %"},
		{title: "5. 50 %"},
		{title: "If the old registry dies", before: m.registryDies, after: m.backWhileItIsDead},
		{title: "If the old registry comes back empty", before: m.registryIsEmpty, after: m.registryIsRestored},
		{title: "6. 100 %", after: m.podsFail},
		{title: "7. Switch the old registry off", before: m.forget, after: m.oldSideEnds},
		{title: "8. Go back", before: m.oldSideReturns},
	}
	for i, stage := range stages {
		if i >= len(m.page.Steps) || m.page.Steps[i].Title != stage.title {
			t.Fatalf("step %d of %s is not %q: change this test with it; its steps are %q", i+1, migrationPage, stage.title, m.page.Titles())
		}
		if stage.before != nil {
			stage.before()
		}
		m.Follow(m.page.Steps[i])
		if stage.after != nil {
			stage.after()
		}
		if len(m.callers) > 0 {
			m.callsAreDivided(stage.title)
		}
	}
	if len(m.page.Steps) != len(stages) {
		t.Errorf("%s has steps that this test does not know: %q", migrationPage, m.page.Titles()[len(stages):])
	}
	for _, c := range m.callers {
		c.mustNotHaveFailed()
		if c.proxy != nil {
			m.must(c.proxy.Rejected(t.Context()))
		}
	}
}

// move is the registries of a service that moves, and its callers.
type move struct {
	*guide.Reader
	t          *testing.T
	page       guide.Page
	shares     map[string][2]float64 // percent of the calls for each old and each new instance, by step
	now        [2]float64            // the shares of the current step
	back       string                // the command that takes all calls back
	registered *servicecenter.Server // the data of the old registry, whether or not it runs
	registry   *servicecenter.Server // the only member of the old registry
	service    string                // the id of the service in it
	instances  map[string]string     // the ids of its instances, by address
	east       *cluster.Cluster
	stopOld    func()
	callers    []*caller
}

func newMove(t *testing.T) *move {
	t.Helper()
	m := &move{t: t, east: own(t), registered: servicecenter.New(servicecenter.Config{Prompt: true, KeepAlive: true}), instances: map[string]string{}}
	t.Cleanup(m.registered.Close)
	admin := kubeconfig(t, m.east.API, cluster.Admin)
	m.Reader = guide.NewReader(t, map[string]string{"isthmus": programs.Isthmus, "kubectl": programs.Kubectl()}, "KUBECONFIG="+admin)
	page := filepath.Join(programs.Repository, filepath.FromSlash(migrationPage))
	m.page = guide.Read(t, page, "http://service-center.registry:30100", "http://"+center)
	m.readProse(page)
	config, err := os.ReadFile(admin)
	m.must(err)
	m.Write("east.yaml", string(config))
	m.must(connect(t, m.east).Namespace(t.Context(), "shop"))
	m.service = m.registered.Register(servicecenter.Service{App: "shop", Name: "orders"})
	m.register()
	m.startRegistry()
	m.stopOld = m.startInstances(oldInstances)
	m.startInstances(newInstances)
	return m
}

func (m *move) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

var (
	shareRow   = regexp.MustCompile(`(?m)^\| (\d\. [^|]+) \| ([\d.]+) \| ([\d.]+) \|$`)
	backAtOnce = regexp.MustCompile("(?m)^\\*\\*Back at once.*`(.+)`")
)

// readProse reads the table of the page, and the command in its text.
func (m *move) readProse(page string) {
	text, err := os.ReadFile(page)
	m.must(err)
	m.shares = map[string][2]float64{}
	for _, row := range shareRow.FindAllStringSubmatch(string(text), -1) {
		former, latter := percent(row[2]), percent(row[3])
		if whole := former*float64(len(oldInstances)) + latter*float64(len(newInstances)); math.Abs(whole-100) > 0.1 {
			m.t.Errorf("the shares of step %q sum up to %g", row[1], whole)
		}
		m.shares[row[1]] = [2]float64{former, latter}
	}
	found := backAtOnce.FindStringSubmatch(string(text))
	if found == nil || len(m.shares) == 0 {
		m.t.Fatalf("%s has no shares, or no way back", page)
	}
	m.back = found[1]
}

func percent(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64) // the row has digits there
	return f
}

// startRegistry starts the old registry, again if it was closed.
func (m *move) startRegistry() {
	m.t.Helper()
	listener := m.listen(center)
	m.registry = m.registered.Replica()
	m.registry.Serve(listener)
	m.t.Cleanup(m.registry.Close)
}

// listen listens at an address, where a listener may have been closed just now: a process
// that is being started has a copy of it, until it runs a program of its own.
func (m *move) listen(address string) (l net.Listener) {
	m.t.Helper()
	await(m.t, "the address to be free", func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(m.t.Context(), "tcp", address)
		return err
	})
	return l
}

func (m *move) registryDies() { m.registry.Close() }

// backWhileItIsDead takes all calls back at once, and returns to the step.
func (m *move) backWhileItIsDead() {
	current := m.now
	m.run(m.back)
	m.callsAreDivided("2. Read the new registry at 0 %")
	m.run("sh shares.sh 50 50")
	m.now = current
}

// podsFail has all pods become unready. No registry with a share has a healthy endpoint then,
// so the old instances are called again.
func (m *move) podsFail() {
	all := m.now
	m.deployAs(false)
	m.callsAreDivided("2. Read the new registry at 0 %")
	m.deployAs(true)
	m.now = all
}

func (m *move) run(command string) {
	m.t.Helper()
	_, err := m.Try(command)
	m.must(err)
}

// registryIsEmpty starts the registry again, which has lost its instances.
func (m *move) registryIsEmpty() {
	for _, id := range m.instances {
		m.registered.UnregisterInstance(m.service, id)
	}
	m.startRegistry()
}

// registryIsRestored has the instances register again, before the end of the hold.
func (m *move) registryIsRestored() {
	m.callsAreDivided("5. 50 %")
	m.awaitState("held")
	m.register()
	m.awaitState("live")
}

// forget forgets who answered so far.
func (m *move) forget() {
	for _, c := range m.callers {
		c.look()
	}
}

// oldSideEnds ends the registry and its instances, once Isthmus does not read it any more.
// The instances have answered no call since they have no share.
func (m *move) oldSideEnds() {
	await(m.t, "the old registry to leave", func() error {
		out, err := m.Try("isthmus sources")
		if err == nil && strings.Contains(out, "legacy") {
			err = errors.New(out)
		}
		return err
	})
	m.registry.Close()
	m.stopOld()
	for _, c := range m.callers {
		answered := c.look()
		for _, address := range oldInstances {
			if answered[address] > 0 {
				m.t.Errorf("%s: of %v calls, some were answered by %s, which has no share", c.name, answered, address)
			}
		}
	}
}

// oldSideReturns starts both again.
func (m *move) oldSideReturns() {
	m.startRegistry()
	m.startInstances(oldInstances)
}

func (m *move) awaitState(state string) {
	m.t.Helper()
	await(m.t, "the old registry to be "+state, func() error {
		out, err := m.Try("isthmus sources legacy --state " + state)
		if err == nil && !strings.Contains(out, "legacy") {
			err = fmt.Errorf("the source is not %s", state)
		}
		return err
	})
}

// register registers the old instances.
func (m *move) register() {
	for _, address := range oldInstances {
		m.instances[address] = m.registered.RegisterInstance(m.service, servicecenter.Instance{
			ID: m.instances[address], HostName: "host", Endpoints: []string{"rest://" + address},
		})
	}
}

// startInstances starts backends, and returns a function that ends them.
func (m *move) startInstances(addresses []string) (stop func()) {
	m.t.Helper()
	var running sync.WaitGroup
	var servers []*http.Server
	for _, address := range addresses {
		m.must(netns.AddAddress(netip.MustParseAddrPort(address).Addr()))
		listener := m.listen(address)
		server := &http.Server{Handler: answers(address), ReadHeaderTimeout: until.Patience, Protocols: new(http.Protocols)}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		servers = append(servers, server)
		running.Go(func() { _ = server.Serve(listener) }) // it is closed below
	}
	stop = sync.OnceFunc(func() {
		for _, server := range servers {
			_ = server.Close()
		}
		running.Wait()
	})
	m.t.Cleanup(stop)
	return stop
}

// latency is how long an instance takes to answer. Envoy's LEAST_REQUEST obeys weights as
// ROUND_ROBIN does, unless several calls are under way.
const latency = 10 * time.Millisecond

// answers says its address over HTTP, and in the header of the health service of gRPC.
func answers(address string) http.Handler {
	health := calls.NewServer(address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			health.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, address)
	})
}

// deploy has the pods in the new registry, as the controllers of a cluster would.
func (m *move) deploy() { m.deployAs(true) }

func (m *move) deployAs(ready bool) {
	m.t.Helper()
	m.must(connect(m.t, m.east).Apply(m.t.Context(), slicesOf, object(m.t, ordersSlice, ready)))
}

// startCallers starts an Envoy, a client of gRPC, and an Envoy of the istiod of the new
// registry's cluster, which has the pods from there as well.
func (m *move) startCallers() {
	m.t.Helper()
	const control, name = "127.0.0.1:15010", "outbound|9080||" + orders
	p := startEnvoy(m.t, control, proxy.Config{Delta: true, Workload: "envoy"})
	m.callers = append(m.callers, keepCallingAtOnce(m.t, underWay, p, name))

	bootstrap, err := proxy.Print(m.t.Context(), programs.Isthmus, "bootstrap", "grpc", "--node", "grpc", "--namespace", "shop", "--address", control)
	m.must(err)
	client := calls.Dial(m.t, calls.Config{Name: "grpc", Target: orders + ":9080", Bootstrap: bootstrap})
	m.t.Cleanup(func() { _ = client.Conn.Close() })
	m.callers = append(m.callers, keepCallingBy(m.t, underWay, "grpc", client.Call))

	mesh, err := os.ReadFile(filepath.Join(m.Dir, "meshconfig.yaml"))
	m.must(err)
	istiod, err := m.east.StartIstiodAs(m.t.Context(), cluster.Setting{Registries: "Kubernetes", Mesh: string(mesh)})
	m.must(err)
	p = startEnvoy(m.t, istiod.XDS, proxy.Config{Delta: true, Istiod: true, ClustersOnly: true, Workload: "istio"})
	m.callers = append(m.callers, keepCallingAtOnce(m.t, underWay, p, name))
	for _, c := range m.callers {
		c.mustBeAnsweredBy(oldInstances...)
		c.forget()
	}
}

// underWay is how many calls each client makes at a time.
const underWay = 10

// observed is how many calls of each client are looked at.
const observed = 1000

// callsAreDivided waits until the calls of each client are divided as the table of the page
// says after a step, or as before if the table does not have the step.
func (m *move) callsAreDivided(step string) {
	m.t.Helper()
	if shares, told := m.shares[step]; told {
		m.now = shares
	}
	await(m.t, fmt.Sprintf("the calls to be divided as after %q", step), func() (err error) {
		m.forget()
		measured := "the new instances have answered"
		for _, c := range m.callers {
			answered, n, late := c.observe(observed)
			if late != nil {
				return late
			}
			latter, wrong := divided(answered, n, m.now)
			measured += fmt.Sprintf(" %.1f %% of %s", latter, c.name)
			if wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", c.name, wrong))
			}
		}
		if err == nil {
			m.t.Logf("%s: %s", step, measured)
		}
		return err
	})
}

// divided returns the share of the new instances in percent, and an error unless the shares
// are within 2 points of those that are wanted, or within half of a small share. A registry
// without a share gets no call. An instance is within 5 points: gRPC picks one at random.
func divided(answered map[string]int, calls int, want [2]float64) (latter float64, err error) {
	for i, instances := range [][]string{oldInstances, newInstances} {
		uneven := 0.0
		latter = 0
		for _, address := range instances {
			share := 100 * float64(answered[address]) / float64(calls)
			latter, uneven = latter+share, max(uneven, math.Abs(share-want[i]))
		}
		whole := want[i] * float64(len(instances))
		within := min(2, whole/2, (100-whole)/2) + 0.02 // the page rounds shares
		if math.Abs(latter-whole) > within || uneven > 5 {
			err = errors.Join(err, fmt.Errorf("of %d calls, %v have answered %.1f %%, want %.1f: %v", calls, instances, latter, whole, answered))
		}
	}
	return latter, err
}

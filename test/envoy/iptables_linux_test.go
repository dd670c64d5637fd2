package envoy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/rig/process"
	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// userOfEnvoy is the one by whom the rules tell what Envoy does from what its workload does.
const userOfEnvoy = 1337

// TestRedirectedByIPTables has the commands of the page redirect all connections of a
// workload to its Envoy, by their destination.
func TestRedirectedByIPTables(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	w := newMachine(t, "REDIRECT")
	for _, f := range families {
		w.connect(f, f.six, process.User{ID: userOfEnvoy})
	}
	w.AwaitActive("the services")
	for _, f := range families {
		w.mustBeCrossed(f, f.called)
	}
}

// TestTransparentByIPTables likewise redirects them with both of their addresses: the
// workload sees who calls it.
func TestTransparentByIPTables(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	w := newMachine(t, "TPROXY")
	for _, f := range families {
		w.connect(f, !f.six, process.User{ID: userOfEnvoy, Capabilities: []uintptr{unix.CAP_NET_ADMIN}})
	}
	w.AwaitActive("the services")
	for _, f := range families {
		w.mustBeCrossed(f, "")
	}
}

// TestOneEnvoyTakesBothFamilies has one Envoy take all connections of a workload with
// addresses of both families.
func TestOneEnvoyTakesBothFamilies(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	w := newMachine(t, "REDIRECT")
	p := w.connectWith(proxy.Config{
		Workload: "both", Delta: true, Redirected: true, IP: families[0].workload.String() + "," + families[1].workload.String(),
		As: &process.User{ID: userOfEnvoy}, Flags: []string{"--interception", w.mode},
	})
	w.AwaitActive("the services")
	for _, f := range families {
		w.mustBeCrossedBy(p, f, f.called)
	}
}

// family is of addresses: those of the workload, of another machine, and others that are
// reached by way of that.
type family struct {
	six      bool
	workload netip.Addr
	other    netip.Addr
	services string // the block of those of services
	unknown  netip.Addr
	called   string // what Envoy calls its workload from
}

var families = []family{
	{false, netip.MustParseAddr("10.99.0.2"), netip.MustParseAddr("10.99.0.1"), "10.98.0.", netip.MustParseAddr("10.97.0.1"), source},
	{true, netip.MustParseAddr("fd99::2"), netip.MustParseAddr("fd99::1"), "fd98::", netip.MustParseAddr("fd97::1"), "::6"},
}

func (f family) name() string { return map[bool]string{false: "ipv4", true: "ipv6"}[f.six] }

func (f family) service(n int) string { return fmt.Sprint(f.services, n) }

func (f family) host(name string) string { return name + "." + f.name() + ".example.com" }

// machine is what runs in the namespace of the test: servers and clients, with their Envoys.
// The servers and clients elsewhere have none.
type machine struct {
	*mesh
	mode      string
	elsewhere *netns.Elsewhere
}

// here does something as the workload does it.
func here(do func()) { do() }

func newMachine(t *testing.T, mode string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("Envoy runs as a user of its own here, so this test needs root")
	}
	elsewhere, err := netns.NewElsewhere()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(elsewhere.Close)
	w := &machine{newMesh(t), mode, elsewhere}
	shell(t, here, `
		ip link add eth0 type veth peer name eth0 netns `+elsewhere.Path+`
		ip link set eth0 up
		ip address add 10.99.0.2/24 dev eth0
		ip address add fd99::2/64 dev eth0 nodad
	`)
	shell(t, elsewhere.Do, `
		ip link set lo up
		ip link set eth0 up
		ip address add 10.99.0.1/24 dev eth0
		ip address add 10.97.0.1/32 dev lo
		ip address add fd99::1/64 dev eth0 nodad
		ip address add fd97::1/128 dev lo
	`)
	shell(t, here, `
		ip route add default via 10.99.0.1
		ip -6 route add default via fd99::1
	`)
	page := guide.Read(t, filepath.Join(repository(t), "docs", "reference", "redirection.md"))
	for _, block := range page.Step(t, mode).Blocks {
		shell(t, here, block.Text)
	}
	for _, at := range []func(func()){here, elsewhere.Do} {
		for port, serve := range map[uint32]func(*testing.T, net.Listener){
			8080: serveRequestsOn, 7000: serveRequestsOn, 9090: serveGreetingsOn,
		} {
			var listener net.Listener
			at(func() { listener = listen(t, "", port) })
			serve(t, listener)
		}
	}
	for _, f := range families {
		w.publish(f)
	}
	w.Serve("")
	return w
}

func repository(t *testing.T) string {
	t.Helper()
	path, err := proxy.Repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// shell runs commands somewhere, all of which must succeed.
func shell(t *testing.T, where func(func()), commands string) {
	t.Helper()
	var out []byte
	var err error
	where(func() { out, err = exec.CommandContext(t.Context(), "sh", "-euxc", commands).CombinedOutput() })
	if err != nil {
		t.Fatalf("%v: %s\nthe programs ip and iptables must be there: go -C test/envoy run ./build installs them on Debian", err, out)
	}
}

// publish has services of the workload, and of the other machine.
func (w *machine) publish(f family) {
	w.Helper()
	for n, s := range []struct {
		name string
		at   netip.Addr
		port port
	}{
		{"web", f.other, port{Number: 80, TargetPort: 8080, Name: "main", Protocol: "HTTP"}},
		{"raw", f.other, port{Number: 9000, TargetPort: 9090, Name: "main", Protocol: "TCP"}},
		{"own-web", f.workload, port{Number: 80, TargetPort: 8080, Name: "main", Protocol: "HTTP"}},
		{"own-raw", f.workload, port{Number: 9000, TargetPort: 9090, Name: "main", Protocol: "TCP"}},
	} {
		w.Folder.write(w.T, f.name()+"-"+s.name, service{Spec: serviceSpec{
			Hosts: []string{f.host(s.name)}, Addresses: []string{f.service(n + 1)}, Resolution: "STATIC",
			Ports: []port{s.port}, Endpoints: []endpoint{{Address: s.at.String()}},
		}})
	}
}

// connect starts the Envoy that takes the connections of a family.
func (w *machine) connect(f family, delta bool, as process.User) {
	w.Helper()
	w.connectWith(proxy.Config{
		Workload: f.name(), Delta: delta, Redirected: true, IP: f.workload.String(), As: &as, Flags: []string{"--interception", w.mode},
	})
}

// crossing is a call, and the clusters of the workload's Envoy that it goes through.
type crossing struct {
	name    string
	from    func(func())
	by      netip.Addr
	says    string // the authority of a request; nothing at all if it is empty
	to      string
	port    uint32
	seen    string // the address from which it comes to the server
	through []string
}

// crossings are in both directions. All but the last go through Envoy. The workload is called
// from an address of Envoy, or if that is empty from the caller's.
func (w *machine) crossings(f family, envoy string) []crossing {
	seen := func(caller netip.Addr) string {
		if envoy != "" {
			return envoy
		}
		return caller.String()
	}
	own, other, unknown := f.workload.String(), f.other.String(), f.unknown.String()
	web, ownWeb := f.host("web"), f.host("own-web")
	toWeb, toRaw := "outbound|80||"+web, "outbound|9000||"+f.host("raw")
	toOwnWeb, toOwnRaw := "outbound|80||"+ownWeb, "outbound|9000||"+f.host("own-raw")
	const requests, connections = "inbound|8080||", "inbound|9090||"
	elsewhere := w.elsewhere.Do
	return []crossing{
		{"a service by its name", here, f.workload, web, f.service(1), 80, own, []string{toWeb}},
		{"a service by its name, at any address", here, f.workload, web, unknown, 80, own, []string{toWeb}},
		{"a service by its address", here, f.workload, "", f.service(2), 9000, own, []string{toRaw}},
		{"connections that no service has", here, f.workload, "", unknown, 9090, own, []string{"PassthroughCluster"}},
		{"requests that no service has", here, f.workload, "nobody.example.com", unknown, 8080, own, []string{"PassthroughCluster"}},
		{"itself by its name", here, f.workload, ownWeb, f.service(3), 80, seen(f.workload), []string{toOwnWeb, requests}},
		{"itself by its address", here, f.workload, "", f.service(4), 9000, seen(f.workload), []string{toOwnRaw, connections}},
		{"the workload with requests", elsewhere, f.other, "anything", own, 8080, seen(f.other), []string{requests}},
		{"the workload for another caller", elsewhere, f.unknown, "anything", own, 8080, seen(f.unknown), []string{requests}},
		{"the workload with connections", elsewhere, f.other, "", own, 9090, seen(f.other), []string{connections}},
		{"the workload where no service is", elsewhere, f.other, "anything", own, 7000, seen(f.other), []string{"InboundPassthroughCluster"}},
		{"itself, directly", here, f.workload, "anything", own, 8080, own, nil},
		{"another, with no Envoy", elsewhere, f.other, "anything", other, 8080, other, nil},
	}
}

// mustBeCrossed makes the calls of a family.
func (w *machine) mustBeCrossed(f family, envoy string) {
	w.Helper()
	w.mustBeCrossedBy(w.Proxies[map[bool]int{false: 0, true: 1}[f.six]], f, envoy)
}

// mustBeCrossedBy makes the calls of a family through an Envoy.
func (w *machine) mustBeCrossedBy(p *proxy.Proxy, f family, envoy string) {
	w.Helper()
	awaitInbound(w.mesh, p)
	for _, c := range w.crossings(f, envoy) {
		await(w, f.name()+" to call "+c.name, func() error { return w.made(p, c) })
	}
	if err := p.Deprecated(w.Context()); err != nil {
		w.Error(err)
	}
	w.MustBeSettled()
}

// made makes a call and checks that it goes where it should, and nowhere else.
func (w *machine) made(p *proxy.Proxy, c crossing) error {
	before, err := w.used(p)
	if err != nil {
		return err
	}
	seen, err := seenFrom(w.Context(), c)
	if err == nil && seen != c.seen {
		err = fmt.Errorf("the call comes from %q, not %q", seen, c.seen)
	}
	if err != nil {
		return err
	}
	after, err := w.used(p)
	if err != nil {
		return err
	}
	for _, cluster := range c.through {
		if after[cluster] <= before[cluster] {
			return fmt.Errorf("cluster %s was not used", cluster)
		}
		delete(after, cluster)
	}
	for cluster, n := range after {
		if n > before[cluster] {
			return fmt.Errorf("cluster %s was used", cluster)
		}
	}
	return nil
}

// seenFrom makes a call and returns the address from which it came to the server, as that
// says. With an authority the call is a request, and without the server speaks first.
func seenFrom(ctx context.Context, c crossing) (seen string, err error) {
	dialer := net.Dialer{Timeout: until.Patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.by, 0))}
	var connection net.Conn
	c.from(func() { connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(c.to, fmt.Sprint(c.port))) })
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(until.Patience)); err != nil {
		return "", err
	}
	reader := bufio.NewReader(connection)
	if c.says == "" {
		_, err = fmt.Fscanln(reader, &seen)
		return seen, err
	}
	request := &http.Request{Method: http.MethodGet, Host: c.says, URL: new(url.URL), Header: http.Header{"Connection": {"close"}}}
	if err := request.Write(connection); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), errors.Join(err, statusOK(response))
}

// used is how many requests and connections went through each cluster that Envoy has from
// Isthmus.
func (w *machine) used(p *proxy.Proxy) (map[string]uint64, error) {
	stats, err := p.Stats(w.Context(), "^cluster%5C..*upstream_(rq|cx)_total$")
	used := map[string]uint64{}
	for name, n := range stats {
		if cluster, _, ours := strings.Cut(strings.TrimPrefix(name, "cluster."), ";.upstream_"); ours {
			used[cluster] += n
		}
	}
	return used, err
}

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// mutual is one of several Isthmuses that read each other, each with a registry of its
// own: a folder, in which the test writes.
type mutual struct {
	*testing.T

	name     string
	folder   string
	data     string // the folder of its store; empty for none
	protocol string // xds or mcp
	port     *net.TCPListener
	reads    []*mutual
	unnamed  bool // the configuration has no instance
	full     bool // it reads Isthmuses with earlier names as full states

	app    *App
	cancel context.CancelFunc
	ended  chan error
}

// newMutuals makes some that read nobody yet.
func newMutuals(t *testing.T, protocol string, names ...string) map[string]*mutual {
	t.Helper()
	all := map[string]*mutual{}
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		all[name] = &mutual{T: t, name: name, folder: t.TempDir(), protocol: protocol, port: l.(*net.TCPListener)}
	}
	return all
}

func (m *mutual) configuration() string {
	var b strings.Builder
	if !m.unnamed {
		fmt.Fprintf(&b, "instance: %s\n", m.name)
	}
	fmt.Fprintf(&b, "sources:\n- {name: files, hold: {share: 1}, file: {path: %q}}\n", m.folder)
	for _, other := range m.reads {
		extra := ""
		if m.protocol == "mcp" && !(m.full && m.name > other.name) {
			extra = ", incremental: true"
		}
		fmt.Fprintf(&b, "- {name: %s, required: false, hold: {share: 1}, %s: {address: %q%s}}\n", other.name, m.protocol, other.port.Addr(), extra)
	}
	fmt.Fprintf(&b, "outputs: {%s: {listen: %q}}\nadmin: {listen: \"127.0.0.1:0\"}\n", m.protocol, "127.0.0.1:0")
	if m.data != "" {
		fmt.Fprintf(&b, "store: {dataDir: %q}\n", m.data)
	}
	return b.String()
}

func (m *mutual) start() {
	m.Helper()
	c, problems := config.Parse([]byte(m.configuration()), os.LookupEnv)
	if len(problems) > 0 {
		m.Fatal(problems)
	}
	machine := thisMachine()
	machine.OptionalWait = time.Second // they read each other, so nobody is listed first
	bound := false
	machine.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
		if bound { // the second is that of the admin API
			return new(net.ListenConfig).Listen(ctx, network, address)
		}
		bound = true
		return lend(m.port)
	}
	ctx, cancel := context.WithCancel(context.Background())
	app, err := assemble(ctx, c, "test", slog.New(slog.DiscardHandler), machine, false)
	if err != nil {
		cancel()
		m.Fatal(err)
	}
	m.app, m.cancel, m.ended = app, cancel, make(chan error, 1)
	go func() { m.ended <- app.Run(ctx) }()
	m.Cleanup(m.stop)
}

func (m *mutual) stop() {
	if m.cancel == nil {
		return
	}
	m.cancel()
	m.cancel = nil
	http.DefaultClient.CloseIdleConnections()
	if err := <-m.ended; err != nil {
		m.Errorf("%s: %v", m.name, err)
	}
}

// lent is a port that outlives who listens on it.
type lent struct {
	*net.TCPListener
	once   sync.Once
	closed chan struct{}
}

func lend(l *net.TCPListener) (net.Listener, error) {
	return &lent{TCPListener: l, closed: make(chan struct{})}, l.SetDeadline(time.Time{})
}

// Accept implements [net.Listener].
func (l *lent) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	select {
	case <-l.closed:
		if err == nil {
			_ = conn.Close()
		}
		return nil, net.ErrClosed
	default:
		return conn, err
	}
}

// Close implements [net.Listener].
func (l *lent) Close() error {
	l.once.Do(func() {
		close(l.closed)
		_ = l.SetDeadline(time.Unix(1, 0))
	})
	return nil
}

// write has the registry have a service with some endpoints.
func (m *mutual) write(name string, addresses ...string) {
	m.Helper()
	var endpoints []string
	for _, address := range addresses {
		endpoints = append(endpoints, fmt.Sprintf("{address: %s}", address))
	}
	text := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%[2]s]
`, name, strings.Join(endpoints, ", "))
	path := filepath.Join(m.folder, name+".yaml")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		m.Fatal(err)
	}
}

func (m *mutual) remove(name string) {
	m.Helper()
	if err := os.Remove(filepath.Join(m.folder, name+".yaml")); err != nil {
		m.Fatal(err)
	}
}

// has lists the addresses of each service that it serves: "cart 10.0.0.1 10.0.0.2".
func (m *mutual) has() (list []string) {
	services := map[string][]string{}
	for r := range m.app.store.List(model.Filter{Kind: model.KindService}) {
		services[strings.TrimSuffix(r.Spec.(model.Service).Hosts.Slice()[0], ".example")] = nil
	}
	for r := range m.app.store.List(model.Filter{Kind: model.KindEndpoint}) {
		host, address, _ := strings.Cut(r.Name, "/")
		services[host] = append(services[host], address)
	}
	for host, addresses := range services {
		slices.Sort(addresses)
		list = append(list, strings.Join(append([]string{host}, slices.Compact(addresses)...), " "))
	}
	slices.Sort(list)
	return list
}

// everybodyHas waits until all have some services and no others, and every source of them
// is live.
func everybodyHas(t *testing.T, all map[string]*mutual, want ...string) {
	t.Helper()
	slices.Sort(want)
	until.NoError(t, 20*time.Millisecond, "everybody has "+strings.Join(want, ", "), func() error {
		for name, m := range all {
			if got := m.has(); !slices.Equal(got, want) {
				return fmt.Errorf("%s has %q", name, got)
			}
			for _, s := range m.app.fleet.supervisors() {
				if st := s.Status(); st.State != source.StateLive {
					return fmt.Errorf("source %s of %s is %s: %s", st.Name, name, st.State, st.Reason)
				}
			}
		}
		return nil
	})
}

// TestEchoesAreShown has two read each other: what comes back is counted, and shown with the
// way that it took. Neither has a name in its configuration.
func TestEchoesAreShown(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"xds", "mcp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			all := newMutuals(t, protocol, "a", "b")
			a, b := all["a"], all["b"]
			a.reads, b.reads = []*mutual{b}, []*mutual{a}
			a.unnamed, b.unnamed = true, true
			a.data = t.TempDir()
			a.write("cart", "10.0.0.1")
			a.start()
			b.start()
			everybodyHas(t, all, "cart 10.0.0.1")
			until.NoError(t, 20*time.Millisecond, "the echo is shown", func() error {
				for _, s := range a.app.fleet.supervisors() {
					if s.Status().Name != "b" {
						continue
					}
					echoed := 0
					for _, e := range s.Exchanges() {
						echoed += e.Echoed
					}
					if notices := s.Status().Notices; echoed < 1 || len(notices) == 0 || !strings.Contains(notices[0].Text, "shop/cart") {
						return fmt.Errorf("%d echoes are counted, and notices are %v", echoed, notices)
					}
				}
				return nil
			})
			status, err := http.Get("http://" + a.app.AdminAddr().String() + "/api/v1/status")
			if err != nil {
				t.Fatal(err)
			}
			defer status.Body.Close()
			findings, err := io.ReadAll(status.Body)
			if err != nil || !strings.Contains(string(findings), " of its resources came in whole or in part through this Isthmus") {
				t.Errorf("the status has no notice: %s (%v)", findings, err)
			}
			if a.app.self == b.app.self || !strings.HasPrefix(a.app.self, "isthmus-") {
				t.Errorf("they are %q and %q", a.app.self, b.app.self)
			}
			resp, err := http.Get("http://" + b.app.AdminAddr().String() + "/api/v1/services/cart.example")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var shown []struct {
				Records, Instances []struct{ Path []string }
			}
			if err := json.NewDecoder(resp.Body).Decode(&shown); err != nil {
				t.Fatal(err)
			}
			if want := []string{a.app.self}; len(shown) != 1 || !slices.Equal(shown[0].Records[0].Path, want) || !slices.Equal(shown[0].Instances[0].Path, want) {
				t.Errorf("shown is %v, want the path %q", shown, want)
			}
			a.remove("cart")
			everybodyHas(t, all)
			named := a.app.self
			a.stop()
			a.start()
			if a.app.self != named {
				t.Errorf("it is %q after a restart, and was %q", a.app.self, named)
			}
		})
	}
}

var graphs = map[string]struct {
	names []string
	reads map[string]string // letters
}{
	"two":      {[]string{"a", "b"}, map[string]string{"a": "b", "b": "a"}},
	"triangle": {[]string{"a", "b", "c"}, map[string]string{"a": "bc", "b": "ca", "c": "ab"}},
	"chain":    {[]string{"a", "b", "c"}, map[string]string{"a": "b", "b": "ac", "c": "b"}},
}

// What one registry removes is gone from all that read each other, whichever way they do,
// and stays so when one of them restarts.
func TestThoseThatReadEachOtherKeepNothingThatIsGone(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"xds", "mcp", "mcp in full states"} {
		for shape, graph := range graphs {
			t.Run(way+"/"+shape, func(t *testing.T) {
				t.Parallel()
				protocol, _, full := strings.Cut(way, " in ")
				all := newMutuals(t, protocol, graph.names...)
				for name, m := range all {
					m.full = full // one of two that read each other: a full state waits until everything is listed
					for _, other := range graph.reads[name] {
						m.reads = append(m.reads, all[string(other)])
					}
					m.data = t.TempDir()
				}
				first, middle := all["a"], all["b"]
				const endpoints = " 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"
				want := []string{"cart 10.0.1.1", "mug 10.0.1.2"} // the loss of one is no suspicious drop
				for i := range 8 {
					name := fmt.Sprintf("shop-%d", i)
					first.write(name, strings.Fields(endpoints)...)
					want = append(want, name+endpoints)
				}
				middle.write("cart", "10.0.1.1")
				middle.write("mug", "10.0.1.2")
				for _, m := range all {
					m.start()
				}
				gone := func(name string) {
					want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, name+" ") })
				}
				everybodyHas(t, all, want...)

				first.write("shop-1", strings.Fields(endpoints)[1:]...)
				gone("shop-1")
				want = append(want, "shop-1"+strings.TrimPrefix(endpoints, " 10.0.0.1"))
				everybodyHas(t, all, want...)
				first.remove("shop-2")
				gone("shop-2")
				everybodyHas(t, all, want...)

				middle.stop()
				first.remove("shop-3")
				gone("shop-3")
				middle.start()
				everybodyHas(t, all, want...)
				middle.remove("cart")
				gone("cart")
				everybodyHas(t, all, want...)

				first.stop()
				first.remove("shop-4")
				gone("shop-4")
				first.start()
				everybodyHas(t, all, want...)
			})
		}
	}
}

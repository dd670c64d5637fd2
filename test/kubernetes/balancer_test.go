package kubernetes_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// balancer passes connections on to an API server. It accepts them all the same while it
// has none, and closes them.
type balancer struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string // empty while there is none
	open   map[net.Conn]bool
}

func newBalancer(t testing.TB, target string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: l, target: target, open: map[net.Conn]bool{}}
	b.running.Go(b.accept)
	t.Cleanup(func() {
		_ = l.Close()
		b.lead("")
		b.running.Wait()
	})
	return b
}

func (b *balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.running.Go(func() { b.serve(client) })
	}
}

func (b *balancer) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	b.mu.Lock()
	target := b.target
	b.mu.Unlock()
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !b.enter(target, client, server) {
		return
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
	}
	both.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, client)
	delete(b.open, server)
}

// enter notes a connection, unless the target is another one by now.
func (b *balancer) enter(target string, ends ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, end := range ends {
		b.open[end] = true
	}
	return b.target == target
}

// lead leads connections elsewhere from now on, and closes those that there are.
func (b *balancer) lead(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.target = target
	for end := range b.open {
		_ = end.Close()
	}
	clear(b.open)
}

// A balancer in front of an API server accepts connections whether the API server is there
// or not. The source says that it is not; everything stays until it is back.
func TestBalancerWithoutAnAPIServer(t *testing.T) {
	t.Parallel()
	client := connect(t, shared)
	if err := client.Namespace(t.Context(), "balanced"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, steadyObjects, "balanced") {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	file := kubeconfig(t, shared.API, cluster.Admin)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimPrefix(config.Clusters["test"].Server, "https://")
	b := newBalancer(t, server)
	config.Clusters["test"].Server = "https://" + b.listener.Addr().String()
	file = filepath.Join(t.TempDir(), "balanced")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}

	m := mirror(t, file)
	m.awaitState(source.StateLive)
	before := m.uids("balanced")
	if len(before) != 3 {
		t.Fatalf("there is %v", before)
	}
	b.lead("")
	if s := m.awaitState(source.StateStale); s.Reason == "" || s.Since.IsZero() {
		t.Errorf("it is stale since %s for the reason %q", s.Since, s.Reason)
	}
	m.mustHave(before, "balanced")
	b.lead(server)
	m.awaitState(source.StateLive)
	m.mustHave(before, "balanced")
	if err := client.Delete(t.Context(), services, "balanced", "steady"); err != nil {
		t.Fatal(err)
	}
	await(t, "the Service is gone", func() error {
		if r := m.records("balanced"); len(r) > 0 {
			return errors.New(fmt.Sprint(r))
		}
		return nil
	})
}

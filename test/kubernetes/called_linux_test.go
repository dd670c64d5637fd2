package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// inNamespace is set where the tests run that need addresses such as those of pods: no
// slice may have one of loopback.
const inNamespace = "ISTHMUS_KUBERNETES_NAMESPACE"

// separately runs a test or a benchmark once more by itself, in a network namespace, and
// returns false where that has been done.
func separately(tb testing.TB) bool {
	tb.Helper()
	if os.Getenv(inNamespace) != "" {
		return false
	}
	arguments := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	if _, is := tb.(*testing.B); !is {
		arguments = append(arguments, "-test.run=^"+tb.Name()+"$", "-test.v")
	}
	status, err := netns.Run(arguments, inNamespace+"=true")
	if err != nil || status != 0 {
		tb.Fatal(errors.Join(err, fmt.Errorf("it ended with status %d", status)))
	}
	return true
}

// enterNamespace prepares the network of a test that runs separately.
func enterNamespace() error {
	if os.Getenv(inNamespace) == "" {
		return nil
	}
	return netns.RaiseLoopback()
}

// listen starts a backend at an address of its own, at which it says its name.
func listen(t testing.TB, name, address string) {
	t.Helper()
	at := netip.MustParseAddrPort(address)
	if err := netns.AddAddress(at.Addr()); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); served.Wait() })
}

// connectEnvoy starts an Envoy that takes everything from an Isthmus.
func connectEnvoy(t *testing.T, i *isthmus, c proxy.Config) *proxy.Proxy {
	t.Helper()
	return startEnvoy(t, i.xds, c)
}

// startEnvoy starts an Envoy that takes everything from one control plane.
func startEnvoy(tb testing.TB, from string, c proxy.Config) *proxy.Proxy {
	tb.Helper()
	dir := tb.TempDir()
	program, err := proxy.Fetch(tb.Context(), os.Stderr)
	if err != nil {
		tb.Fatal(err)
	}
	c.Isthmus = programs.Isthmus // which prints the bootstrap
	c.Program, c.Dir, c.Namespace, c.ControlPlanes = program, dir, "shop", []netip.AddrPort{netip.MustParseAddrPort(from)}
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	p, err := proxy.Start(ctx, c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			tb.Logf("--- log of %s\n%.4000s", p.Name, p.Log())
		}
	})
	return p
}

// caller calls a cluster of an Envoy all the time. No call is made twice.
type caller struct {
	t       *testing.T
	proxy   *proxy.Proxy
	cluster string
	client  *http.Client
	stop    func()

	mu       sync.Mutex
	calls    int
	answered map[string]int // since the last look
	failed   []error
}

func keepCalling(t *testing.T, p *proxy.Proxy, cluster string) *caller {
	ctx, cancel := context.WithCancel(t.Context())
	c := &caller{t: t, proxy: p, cluster: cluster, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}, answered: map[string]int{}}
	var calling sync.WaitGroup
	for range 3 {
		calling.Go(func() {
			for ctx.Err() == nil {
				by, err := c.call(context.WithoutCancel(ctx))
				c.note(by, err)
				<-time.After(3 * time.Millisecond)
			}
		})
	}
	c.stop = sync.OnceFunc(func() { cancel(); calling.Wait(); c.client.CloseIdleConnections() })
	t.Cleanup(c.stop)
	return c
}

func (c *caller) call(ctx context.Context) (by string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.proxy.Address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("x-cluster", c.cluster)
	response, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func (c *caller) note(by string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if err != nil {
		c.failed = append(c.failed, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
		return
	}
	c.answered[by]++
}

// forget forgets which calls have failed so far.
func (c *caller) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = nil
}

// look is who answered since the last look.
func (c *caller) look() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := c.answered
	c.answered = map[string]int{}
	return answered
}

// mustBeAnsweredBy waits until calls are answered by each of some backends, and by nobody
// else: a hundred of them.
func (c *caller) mustBeAnsweredBy(names ...string) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("answers from %v", names), func() error {
		c.look()
		answered, calls := map[string]int{}, 0
		for end := time.Now().Add(10 * time.Second); calls < 100; {
			if time.Now().After(end) {
				return fmt.Errorf("there are %d answers in 10 s", calls)
			}
			<-time.After(20 * time.Millisecond)
			for name, count := range c.look() {
				answered[name] += count
				calls += count
			}
		}
		for _, name := range names {
			if answered[name] == 0 {
				return fmt.Errorf("there are answers from %v", answered)
			}
		}
		if len(answered) != len(names) {
			return fmt.Errorf("there are answers from %v", answered)
		}
		return nil
	})
}

// mustNotHaveFailed ends the calls, none of which may have failed.
func (c *caller) mustNotHaveFailed() {
	c.t.Helper()
	c.stop()
	c.t.Logf("%d calls", c.calls)
	if len(c.failed) > 0 {
		c.t.Errorf("%d of %d calls failed: %v", len(c.failed), c.calls, errors.Join(c.failed[:min(5, len(c.failed))]...))
	}
}

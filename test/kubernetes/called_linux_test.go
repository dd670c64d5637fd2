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
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
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
	server := &http.Server{ReadHeaderTimeout: until.Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
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
	ctx, cancel := context.WithTimeout(tb.Context(), until.Patience)
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

// caller makes calls all the time. No call is made twice.
type caller struct {
	t     *testing.T
	name  string
	proxy *proxy.Proxy // nil if it is no Envoy
	call  func(ctx context.Context) (by string, err error)
	stop  func()

	mu       sync.Mutex
	calls    int
	answered map[string]int // since the last look
	failed   []error
}

// keepCalling calls a cluster of an Envoy, by three calls at a time.
func keepCalling(t *testing.T, p *proxy.Proxy, cluster string) *caller {
	t.Helper()
	return keepCallingAtOnce(t, 3, p, cluster)
}

func keepCallingAtOnce(t *testing.T, atOnce int, p *proxy.Proxy, cluster string) *caller {
	t.Helper()
	client := &http.Client{Timeout: until.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	t.Cleanup(client.CloseIdleConnections)
	c := keepCallingBy(t, atOnce, p.Name, callsOf(p, cluster, client))
	c.proxy = p
	return c
}

// keepCallingBy makes calls by a function, which returns the name of the backend that answered.
func keepCallingBy(t *testing.T, atOnce int, name string, call func(context.Context) (string, error)) *caller {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &caller{t: t, name: name, call: call, answered: map[string]int{}}
	var calling sync.WaitGroup
	for range atOnce {
		calling.Go(func() {
			for ctx.Err() == nil {
				by, err := c.call(context.WithoutCancel(ctx))
				c.note(by, err)
				<-time.After(3 * time.Millisecond)
			}
		})
	}
	c.stop = sync.OnceFunc(func() { cancel(); calling.Wait() })
	t.Cleanup(c.stop)
	return c
}

// callsOf returns a function that makes one call of a cluster of an Envoy.
func callsOf(p *proxy.Proxy, cluster string, client *http.Client) func(context.Context) (string, error) {
	return func(ctx context.Context) (by string, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address+"/", http.NoBody)
		if err != nil {
			return "", err
		}
		request.Header.Set("x-cluster", cluster)
		response, err := client.Do(request)
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

// observe counts who answers calls, since the last look: at least so many calls.
func (c *caller) observe(enough int) (answered map[string]int, calls int, err error) {
	answered = map[string]int{}
	for end := time.Now().Add(until.Patience); calls < enough; {
		if time.Now().After(end) {
			return nil, 0, fmt.Errorf("%s has %d answers in %s", c.name, calls, until.Patience)
		}
		<-time.After(20 * time.Millisecond)
		for name, count := range c.look() {
			answered[name] += count
			calls += count
		}
	}
	return answered, calls, nil
}

// mustBeAnsweredBy waits until calls are answered by each of some backends, and by nobody
// else: a hundred of them.
func (c *caller) mustBeAnsweredBy(names ...string) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("answers from %v", names), func() error {
		c.look()
		answered, _, err := c.observe(100)
		if err != nil {
			return err
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

package nacos_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/nacos/server"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// nacos is a Nacos server, and the Isthmuses that read it.
type nacos struct {
	*server.Server
	readers []*isthmus
}

// The ports of the two servers.
const sharedPort, killedPort = 8848, 8868

func newNacos(name string, port int) (*nacos, error) {
	dir, err := folder(name)
	if err != nil {
		return nil, err
	}
	return &nacos{Server: server.New(os.Getenv(variableServer), dir, port)}, nil
}

// starting is held while a server starts: two at once take more than twice as long.
var starting sync.Mutex

// attempts is how often a start is tried, and how many times as long as for other outcomes is waited for
// it: the start is a minute of a processor.
const attempts = 5

// run starts it, again if it was killed. A Nacos that takes longer than 10 s for its
// database gives up and ends, as it may on a busy machine. So that is tried again.
func (n *nacos) run(ctx context.Context) (err error) {
	starting.Lock()
	defer starting.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attempts*until.Patience)
	defer cancel()
	for range attempts {
		if err = n.Run(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// add starts an Isthmus that reads it by each protocol, and holds for some time. Nacos
// sends full states always, even to who asks for increments.
func (n *nacos) add(ctx context.Context, name, hold string, incremental bool) (added []*isthmus, err error) {
	for protocol, keys := range map[string]string{
		"mcp": fmt.Sprintf("mcp: {address: %q, incremental: %t}", n.MCP, incremental),
		"xds": fmt.Sprintf("xds: {address: %q}", n.MCP),
	} {
		i, err := newIsthmus(name+"-"+protocol, fmt.Sprintf("{name: nacos, hold: {for: %s}, %s}", hold, keys))
		if err != nil {
			return nil, err
		}
		n.readers, added = append(n.readers, i), append(added, i)
		if err := i.Serve(ctx); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// stop kills all of it.
func (n *nacos) stop() {
	for _, i := range n.readers {
		i.Kill()
	}
	n.Kill()
}

// shared is the server that tests share, each with services of its own. There is
// another service in it, so that no test takes away everything that there is.
var shared struct {
	once  sync.Once
	nacos *nacos
	err   error
}

func useShared(t *testing.T) *nacos {
	t.Helper()
	shared.once.Do(func() { shared.nacos, shared.err = startShared() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.nacos
}

func startShared() (*nacos, error) {
	n, err := newNacos("shared", sharedPort)
	if err != nil {
		return nil, err
	}
	if err := n.run(context.Background()); err != nil {
		return n, err
	}
	if err := n.register(context.Background(), instance{Service: "anchor", IP: "10.0.0.1", Port: 80}); err != nil {
		return n, err
	}
	_, err = n.add(context.Background(), "shared", "60s", false)
	return n, err
}

func stopShared() {
	if shared.nacos != nil {
		shared.nacos.stop()
	}
}

// instance is one of a service as a test names it.
type instance = server.Instance

// register registers an instance that lasts for longer than the tests, without beats.
func (n *nacos) register(ctx context.Context, i instance) error {
	i.Lasts = time.Hour
	return n.Register(ctx, i)
}

// keepAlive registers an instance and sends beats for it until the test ends, or stop
// is called.
func (n *nacos) keepAlive(t *testing.T, i instance) (stop func()) {
	t.Helper()
	if err := n.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		again := time.NewTicker(2 * time.Second)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			if err := n.Beat(ctx, i); err != nil && ctx.Err() == nil {
				t.Errorf("a beat of %s: %v", i.Service, err)
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); beating.Wait() })
	t.Cleanup(stop)
	return stop
}

// mustRegister is register in a test.
func (n *nacos) mustRegister(t *testing.T, i instance) {
	t.Helper()
	if err := n.register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

// lists expects what Nacos itself says of a service's instances.
func (n *nacos) lists(t *testing.T, of instance, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("Nacos to list %v of %s", want, of.Service), func() error {
		list, err := n.Instances(t.Context(), of)
		if err != nil {
			return err
		}
		got := []string{}
		for _, i := range list {
			text := fmt.Sprintf("%s:%d", i.IP, i.Port)
			if !i.Healthy {
				text += " unhealthy"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			return fmt.Errorf("it lists %q", got)
		}
		return nil
	})
}

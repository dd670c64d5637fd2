package envoy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestSidecarListensForItsWorkload has Envoys that nothing is redirected to listen at the
// ports of their workload, as they say, while that listens at loopback alone.
func TestSidecarListensForItsWorkload(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		address := map[bool]string{true: "127.0.3.1", false: "127.0.3.2"}[delta]
		web, raw, other := freePort(t), freePort(t), freePort(t)
		called := freePort(t)
		serveRequests(t, "127.0.0.1", web)
		serveGreetings(t, "127.0.0.1", raw)
		m := newMesh(t)
		m.Folder.write(t, "web", service{Spec: serviceSpec{
			Hosts: []string{"web.example.com"}, Resolution: "STATIC", Endpoints: []endpoint{{Address: address}},
			Ports: []port{{Number: called, TargetPort: web, Name: "main", Protocol: "HTTP"}, {Number: web, Name: "own", Protocol: "HTTP"}},
		}})
		m.Folder.write(t, "raw", service{Spec: serviceSpec{
			Hosts: []string{"raw.example.com"}, Resolution: "STATIC", Endpoints: []endpoint{{Address: address}},
			Ports: []port{{Number: freePort(t), TargetPort: other, Name: "main", Protocol: "TCP"}},
		}})
		i := m.Serve("")
		p := m.connectWith(proxy.Config{
			Delta: delta, Listeners: true, IP: address,
			Flags: []string{"--inbound", fmt.Sprintf("%d,0.0.0.0:%d=%d,%d=%d", web, other, raw, freePort(t), web)},
		})
		m.AwaitActive("the services")
		await(t, "the workload to be called", func() error { return calledAt(t.Context(), p, address, web) })
		await(t, "a service to be called that is the workload's", func() error {
			response, err := requested(t.Context(), called, "web.example.com")
			if err == nil {
				err = errors.Join(response.Body.Close(), statusOK(response))
			}
			return err
		})
		// 0.0.0.0 is every address of the machine.
		await(t, "the server that speaks first to be reached", func() error { return greetedAt(t.Context(), fmt.Sprintf("%s:%d", address, other)) })
		listeners, err := p.Listeners(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{fmt.Sprintf("%s_%d", address, web), fmt.Sprintf("0.0.0.0_%d", other), fmt.Sprintf("127.0.0.1_%d", called)} {
			if listeners[name].Version == "" {
				t.Errorf("there is no listener %s, but %v", name, listeners)
			}
		}
		if _, found := listeners[fmt.Sprintf("127.0.0.1_%d", web)]; found {
			t.Error("it listens where its workload listens")
		}
		m.MustShowWhatEnvoysHold()
		if log := i.Log(); strings.Contains(log, "invalid node metadata is ignored") {
			t.Errorf("something was left out: %s", log)
		}

		// The listeners follow the services: nothing is taken at a port that none has.
		m.Folder.remove(t, "raw")
		await(t, "the port to be closed that no service has", func() error {
			if err := greetedAt(t.Context(), fmt.Sprintf("%s:%d", address, other)); err == nil {
				return errors.New("it still answers")
			}
			return nil
		})
		if err := calledAt(t.Context(), p, address, web); err != nil {
			t.Error(err)
		}
		m.MustBeSettled()
		if err := p.Deprecated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWrongBindIsLeftOutAndReported has a sidecar say of one port that it leads to itself.
func TestWrongBindIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	const address = "127.0.3.3"
	web := freePort(t)
	serveRequests(t, "127.0.0.1", web)
	m := newMesh(t)
	m.Folder.write(t, "web", service{Spec: serviceSpec{
		Hosts: []string{"web.example.com"}, Resolution: "STATIC", Endpoints: []endpoint{{Address: address}},
		Ports: []port{{Number: web, Name: "main", Protocol: "HTTP"}},
	}})
	i := m.Serve("")
	p := m.connectWith(proxy.Config{
		Delta: true, Listeners: true, IP: address, Flags: []string{"--inbound", fmt.Sprintf("0.0.0.0:%d,%d", web, web)},
	})
	m.AwaitActive("the services")
	await(t, "the other port to be called", func() error { return calledAt(t.Context(), p, address, web) })
	if log := i.Log(); !strings.Contains(log, "ISTHMUS_INBOUND[0]") || !strings.Contains(log, p.Workload) {
		t.Errorf("nothing was reported: %s", log)
	}
	m.MustBeSettled()
}

// TestSidecarListensAtTheListedPortsAlone has a registry list a service at a port at which
// another program of the machine listens. The sidecar's node does not list that port, so the
// program keeps it.
func TestSidecarListensAtTheListedPortsAlone(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		listed, taken := freePort(t), freePort(t)
		serveRequests(t, "127.0.3.4", listed)
		m := newMesh(t)
		called := service{Spec: serviceSpec{
			Hosts: []string{"web.example.com"}, Resolution: "STATIC", Endpoints: []endpoint{{Address: "127.0.3.4"}},
			Ports: []port{{Number: listed, Name: "main", Protocol: "HTTP"}},
		}}
		m.Folder.write(t, "web", called)
		i := m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true, Flags: []string{"--outbound", fmt.Sprint(listed)}})
		m.AwaitActive("the service")
		calls := func() error {
			response, err := requested(t.Context(), listed, "web.example.com")
			if err == nil {
				err = errors.Join(response.Body.Close(), statusOK(response))
			}
			return err
		}
		await(t, "the service to be called", calls)
		noticed := func(object string) func() error {
			return func() error {
				clients, err := i.clients()
				if err == nil && (len(clients) != 1 || len(clients[0].Notices) != 1 || clients[0].Notices[0].Object != object) {
					err = fmt.Errorf("the clients are %+v", clients)
				}
				return err
			}
		}
		await(t, "a notice of the folder's own service", noticed("port 80"))
		called.Spec.Ports = append(called.Spec.Ports, port{Number: taken, TargetPort: listed, Name: "more", Protocol: "HTTP"})
		m.Folder.write(t, "web", called)
		m.AwaitActive("the other port")
		await(t, "a notice of the port", noticed(fmt.Sprintf("ports 80, %d", taken)))
		m.MustBeSettled()
		serveGreetings(t, "127.0.0.1", taken) // nobody else is bound there
		if err := greetedAt(t.Context(), fmt.Sprintf("127.0.0.1:%d", taken)); err != nil {
			t.Error(err)
		}
		listeners, err := p.Listeners(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, found := listeners[fmt.Sprintf("127.0.0.1_%d", taken)]; found || listeners[fmt.Sprintf("127.0.0.1_%d", listed)].Version == "" {
			t.Errorf("the listeners are %v", listeners)
		}
		if err := calls(); err != nil {
			t.Error(err)
		}
	})
}

func statusOK(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// calledAt checks that a request arrives at the workload through the cluster of its port.
func calledAt(ctx context.Context, p *proxy.Proxy, address string, number uint32) error {
	counter := fmt.Sprintf("cluster.inbound|%d||;.upstream_rq_total", number)
	before, err := p.Stats(ctx, "upstream_rq_total")
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/", address, number), http.NoBody)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	from, err := io.ReadAll(response.Body)
	if err := errors.Join(err, statusOK(response)); err != nil {
		return err
	}
	after, err := p.Stats(ctx, "upstream_rq_total")
	if err == nil && (string(from) != "127.0.0.1" || after[counter] <= before[counter]) {
		err = fmt.Errorf("a request from %q, and %s is %d", from, counter, after[counter])
	}
	return err
}

// greetedAt checks that a server speaks first, and with the sidecar beside it.
func greetedAt(ctx context.Context, at string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(until.Patience)); err != nil {
		return err
	}
	from, err := bufio.NewReader(connection).ReadString('\n')
	if err == nil && from != "127.0.0.1\n" {
		err = fmt.Errorf("a connection from %q", from)
	}
	return err
}

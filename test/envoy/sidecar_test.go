package envoy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// TestSidecarCallsServices has Envoys with nothing but a bootstrap: their listeners and
// routes come from Isthmus, and calls reach the service that they name.
func TestSidecarCallsServices(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
		shared, alone := freePort(t), freePort(t)
		on := func(host, protocol string, number uint32, b *backend) service {
			return service{Spec: serviceSpec{
				Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: number, Name: "main", Protocol: protocol}},
				Endpoints: []endpoint{b.endpoint("main")},
			}}
		}
		m.Folder.write(t, "web", on("web.example.com", "HTTP", shared, web))
		m.Folder.write(t, "api", on("api.shop.svc.cluster.local", "HTTP", shared, api))
		m.Folder.write(t, "raw", on("raw.example.com", "TCP", alone, web))
		m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		m.AwaitActive("the services")
		for host, want := range map[string]string{
			"web.example.com": "web", "WEB.example.com:8080": "web", "web.example.com.": "web",
			"api": "api", "api.shop": "api", "api.shop.svc": "api", "api.shop.svc.cluster.local": "api",
		} {
			await(t, host+" to answer", func() error { return answers(t.Context(), shared, host, want) })
		}
		await(t, "the port without HTTP to answer", func() error { return answers(t.Context(), alone, "whatever", "web") })

		m.Folder.write(t, "api", on("web2.example.com", "HTTP", shared, api))
		await(t, "a service that comes to answer", func() error { return answers(t.Context(), shared, "web2.example.com", "api") })
		m.Folder.remove(t, "raw")
		await(t, "the listener of a service that goes to go", func() error {
			if err := answers(t.Context(), alone, "whatever", "web"); err == nil {
				return fmt.Errorf("port %d still answers", alone)
			}
			return nil
		})
		m.MustBeSettled()
		if err := p.Deprecated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func freePort(t *testing.T) uint32 {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := net.SplitHostPort(address)
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// answers checks which backend answers a request for a host at a port of loopback.
func answers(ctx context.Context, number uint32, host, want string) error {
	return answersOver(ctx, &http.Transport{DisableKeepAlives: true}, number, host, want)
}

func answersOver(ctx context.Context, transport *http.Transport, number uint32, host, want string) error {
	response, err := requestedOver(ctx, transport, number, host)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if got := response.Header.Get(answeredBy); got != want {
		return fmt.Errorf("%s answers %d %q by %q, not by %s", host, response.StatusCode, body, got, want)
	}
	return nil
}

// requested makes a request for a host at a port of loopback. It makes one attempt.
func requested(ctx context.Context, number uint32, host string) (*http.Response, error) {
	return requestedOver(ctx, &http.Transport{DisableKeepAlives: true}, number, host)
}

func requestedOver(ctx context.Context, transport *http.Transport, number uint32, host string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", number), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Host = host
	return transport.RoundTrip(request)
}

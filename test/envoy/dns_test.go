package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// nameserver knows some names that no service has.
type nameserver struct {
	Address string
	known   map[string][4]byte // with a final dot
	asked   sync.Map           // names, to how often
}

// startNameserver starts one on loopback.
func startNameserver(t *testing.T, known map[string][4]byte) *nameserver {
	t.Helper()
	var config net.ListenConfig
	socket, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameserver{Address: socket.LocalAddr().String(), known: known}
	var served sync.WaitGroup
	served.Go(func() {
		room := make([]byte, 4096)
		for {
			size, from, err := socket.ReadFrom(room)
			if err != nil {
				return
			}
			if answer, err := n.answer(room[:size]); err == nil {
				_, _ = socket.WriteTo(answer, from)
			}
		}
	})
	t.Cleanup(func() { _ = socket.Close(); served.Wait() })
	return n
}

func (n *nameserver) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	count, _ := n.asked.LoadOrStore(strings.ToLower(q.Name.String()), new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	address, known := n.known[strings.ToLower(q.Name.String())]
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}, Body: &dnsmessage.AResource{A: address},
		}}
	}
	return m.Pack()
}

// Asked is how often it was asked for a name.
func (n *nameserver) Asked(name string) int64 {
	count, ok := n.asked.Load(name + ".")
	if !ok {
		return 0
	}
	return count.(*atomic.Int64).Load()
}

// resolverAt asks a nameserver at an address, as programs in Go do.
func resolverAt(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, address)
	}}
}

// resolves checks what a name stands for; nothing is that there is no such name.
func resolves(ctx context.Context, r *net.Resolver, name string, want ...string) error {
	found, err := r.LookupHost(ctx, name+".") // without the domains of this machine
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound && len(want) == 0 {
		return nil
	}
	slices.Sort(found)
	if err == nil && !slices.Equal(found, want) {
		err = fmt.Errorf("%s is %v, not %v", name, found, want)
	}
	return err
}

// httpOn is a service whose requests a backend answers.
func httpOn(host string, number uint32, b *backend) service {
	return service{Spec: serviceSpec{
		Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: number, Name: "main", Protocol: "HTTP"}},
		Endpoints: []endpoint{b.endpoint("main")},
	}}
}

// TestSidecarAnswersLookups has an application ask the sidecar for names, and call what it
// is told. Names that are of no service are those of a nameserver.
func TestSidecarAnswersLookups(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web := startBackend(t, "web", "web")
		others := startNameserver(t, map[string][4]byte{"outside.example.org.": {192, 0, 2, 77}, "external.example.com.": {192, 0, 2, 78}})
		shared, lookups := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf("dns: {port: %d, upstream: [%q], ttl: 31s}", lookups, others.Address)
		label := strings.Repeat("x", 63)
		hosts := []string{
			"web.example.com", "api.shop.svc.cluster.local", "*.wild.example.com", "1.2.3.example.com",
			label + "." + label + "." + label + ".example.com",
		}
		for _, host := range hosts {
			m.Folder.write(t, nameOf(host)[:min(20, len(nameOf(host)))], httpOn(host, shared, web))
		}
		external := httpOn("external.example.com", freePort(t), web)
		external.Spec.Resolution = "DNS"
		m.Folder.write(t, "external", external)
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		m.AwaitActive("the services")

		at := fmt.Sprintf("127.0.0.1:%d", lookups)
		resolver := resolverAt(at)
		for name, want := range map[string][]string{
			"web.example.com": {"127.0.0.1"}, "WEB.example.COM": {"127.0.0.1"},
			"api": {"127.0.0.1"}, "api.shop": {"127.0.0.1"}, "api.shop.svc": {"127.0.0.1"}, "api.shop.svc.cluster.local": {"127.0.0.1"},
			"a.wild.example.com": {"127.0.0.1"}, "b.a.wild.example.com": {"127.0.0.1"}, "wild.example.com": nil,
			"1.2.3.example.com": {"127.0.0.1"}, hosts[4]: {"127.0.0.1"},
			"outside.example.org": {"192.0.2.77"}, "external.example.com": {"192.0.2.78"},
			"nowhere.example.org": nil, "nowhere.example.com": nil,
		} {
			await(t, name+" to be answered", func() error { return resolves(t.Context(), resolver, name, want...) })
		}
		if err := called(t.Context(), resolver, "web.example.com", shared, "web"); err != nil {
			t.Error(err)
		}
		if ttl, err := timeToLive(t.Context(), at, "web.example.com."); err != nil || ttl != 31 {
			t.Errorf("an answer may be kept %d s (%v)", ttl, err)
		}
		if n := others.Asked("nowhere.example.org"); n == 0 {
			t.Error("nobody asked the nameserver for a name that is of no service")
		}

		m.Folder.write(t, "added", httpOn("added.example.com", shared, web))
		await(t, "a service that comes", func() error { return resolves(t.Context(), resolver, "added.example.com", "127.0.0.1") })
		m.Folder.remove(t, "added")
		await(t, "a service that goes", func() error { return resolves(t.Context(), resolver, "added.example.com") })
		m.MustBeSettled()
	})
}

// called resolves a host and calls what it stands for.
func called(ctx context.Context, r *net.Resolver, host string, number uint32, want string) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Resolver: r}).DialContext}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s.:%d/", host, number), http.NoBody)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if got := response.Header.Get(answeredBy); got != want {
		return fmt.Errorf("%s is answered %d by %q, not by %s", host, response.StatusCode, got, want)
	}
	return nil
}

// timeToLive is that of an answer, in seconds.
func timeToLive(ctx context.Context, at, name string) (uint32, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "udp", at)
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	text, err := query.Pack()
	if err != nil {
		return 0, err
	}
	room := make([]byte, 4096)
	_ = socket.SetDeadline(time.Now().Add(until.Patience))
	if _, err = socket.Write(text); err != nil {
		return 0, err
	}
	size, err := socket.Read(room)
	if err != nil {
		return 0, err
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(room[:size]); err != nil || len(answer.Answers) == 0 {
		return 0, fmt.Errorf("an answer %v (%w)", answer, err)
	}
	return answer.Answers[0].Header.TTL, nil
}

// TestLookupsGoOnWhileServicesChange asks for names all the time while services come and
// go. Each change gives Envoy another listener, and no lookup of a service fails for it.
func TestLookupsGoOnWhileServicesChange(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		const changes = 15
		m := newMesh(t)
		web := startBackend(t, "web", "web")
		others := startNameserver(t, map[string][4]byte{"outside.example.org.": {192, 0, 2, 77}})
		shared, lookups := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf("dns: {port: %d, upstream: [%q]}", lookups, others.Address)
		m.Folder.write(t, "web", httpOn("web.example.com", shared, web), httpOn("api.shop.svc.cluster.local", shared, web))
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		m.AwaitActive("the services")
		resolver := resolverAt(fmt.Sprintf("127.0.0.1:%d", lookups))
		await(t, "the first answer", func() error { return resolves(t.Context(), resolver, "web.example.com", "127.0.0.1") })

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var asking sync.WaitGroup
		var answered, outside, lost atomic.Int64
		for _, name := range []string{"web.example.com", "api", "api.shop.svc"} {
			asking.Go(func() {
				for ctx.Err() == nil {
					if err := resolves(t.Context(), resolver, name, "127.0.0.1"); err != nil {
						t.Error(err)
						return
					}
					answered.Add(1)
				}
			})
		}
		asking.Go(func() { // what is under way to a nameserver when the listener changes is lost
			for ctx.Err() == nil {
				outside.Add(1)
				if resolves(t.Context(), resolver, "outside.example.org", "192.0.2.77") != nil {
					lost.Add(1)
				}
			}
		})
		for n := range changes {
			name := fmt.Sprintf("added-%d.example.com", n)
			m.Folder.write(t, "added", httpOn(name, shared, web))
			await(t, name, func() error { return resolves(t.Context(), resolver, name, "127.0.0.1") })
		}
		stop()
		asking.Wait()
		t.Logf("%d lookups of services were answered during %d changes, and %d of %d of other names were lost", answered.Load(), changes, lost.Load(), outside.Load())
		if lost.Load() > 2*changes { // one at most when the listener changes
			t.Errorf("%d of %d lookups of other names were lost", lost.Load(), outside.Load())
		}
		m.MustBeSettled()
	})
}

// TestListenersGoOnWithoutThatOfNames has somebody else listen where lookups are to be
// answered. Envoy rejects that listener, and no other one suffers for it.
func TestListenersGoOnWithoutThatOfNames(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web := startBackend(t, "web", "web")
		var config net.ListenConfig
		taken, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		shared, later := freePort(t), freePort(t)
		m.Envoy = fmt.Sprintf("dns: {port: %d}", netip.MustParseAddrPort(taken.LocalAddr().String()).Port())
		m.Folder.write(t, "web", httpOn("web.example.com", shared, web))
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		await(t, "a service to answer", func() error { return answers(t.Context(), shared, "web.example.com", "web") })
		m.Folder.write(t, "later", httpOn("later.example.com", later, web))
		await(t, "a service that comes to answer", func() error { return answers(t.Context(), later, "later.example.com", "web") })
		m.Folder.remove(t, "later")
		await(t, "its listener to go", func() error {
			if answers(t.Context(), later, "later.example.com", "web") == nil {
				return errors.New("it answers")
			}
			return nil
		})
		await(t, "the rejection to be shown", func() error {
			if m.Isthmuses[0].Rejected() == nil {
				return errors.New("nothing was rejected")
			}
			return nil
		})
	})
}

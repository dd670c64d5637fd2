package envoy_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestEveryChangeBecomesActiveOneByOne is TestEveryChangeOfFormBecomesActive with
// endpoints that go one by one, to Envoys of delta, as soon as there are two.
func TestEveryChangeBecomesActiveOneByOne(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Envoy = "leds: {above: 1}"
	everyChangeOfForm(t, m)
}

// manyIn is many endpoints in some localities.
func manyIn(localities, n int) []endpoint {
	all := manyEndpoints(n)
	for i := range all {
		all[i].Locality = fmt.Sprintf("r/z%d", i%localities)
	}
	return all
}

// TestMembersThatGoMeanwhileAreGone cuts the connection of an Envoy while members of a
// collection change, so that it comes back to the process that it had them of. Then
// it is restarted, then the cluster changes.
func TestMembersThatGoMeanwhileAreGone(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Envoy, m.Hold = "leds: {above: 100}", "min: 1000000"
	large := static("large.example.com", manyIn(3, 300)...)
	m.Folder.write(t, "large", large)
	i := m.Serve("")
	r := startRelay(t, i.XDS)
	i.XDS = r.address
	p := m.Connect(true)
	m.AwaitActive("the service")
	write := func() { m.Folder.write(t, "large", large) }

	for range 3 { // the names stay
		r.cut()
		large.Spec.Endpoints = large.Spec.Endpoints[5:]
		large.Spec.Endpoints[0].Weight += 2
		write()
		i.awaitServed(t, "large.example.com", len(large.Spec.Endpoints))
		r.restore()
		m.AwaitActive("what changed while it was away")
	}
	for _, protocol := range []string{"GRPC", "TCP", "HTTP"} {
		large.Spec.Ports[0].Protocol = protocol
		large.Spec.Endpoints = large.Spec.Endpoints[3:]
		write()
		m.AwaitActive("another cluster, " + protocol)
		large.Spec.Endpoints = large.Spec.Endpoints[1:]
		write()
		m.AwaitActive("a member less")
	}
	i.Kill()
	large.Spec.Endpoints = large.Spec.Endpoints[5:]
	write()
	i.Serve()
	m.AwaitActive("what changed while Isthmus was away")
	large.Spec.Endpoints = append(large.Spec.Endpoints, endpoint{Address: "192.0.2.77", Locality: "r/new"})
	write()
	m.AwaitActive("another locality")
	large.Spec.Endpoints = large.Spec.Endpoints[1:]
	write()
	m.AwaitActive("a member less in it")
	if err := p.Rejected(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOneOfTwentyThousandIsAFewBytes counts what reaches an Envoy when one endpoint of
// 20,000 changes, and when it has to be sent all of them again.
func TestOneOfTwentyThousandIsAFewBytes(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Envoy, m.Hold = "leds: {above: 1000}", "min: 1000000"
	labels := map[string]string{"app": "large"}
	large := static("large.example.com")
	large.Spec.Selector = &selector{Labels: labels}
	rest, few := workloads(labels, manyIn(3, 20_000)...), 20
	m.Folder.write(t, "large", append(slices.Clone(rest[few:]), large)...)
	rest = rest[:few]
	write := func() { m.Folder.write(t, "few", rest...) }
	write()
	i := m.Serve("")
	r := startRelay(t, i.XDS)
	i.XDS = r.address
	p := m.Connect(true)
	m.AwaitActive("the service")
	all := r.sent.Load()
	const changes = 5
	change := func(what string, do func(n int)) {
		began, each := time.Now(), r.sent.Load()
		for n := range changes {
			before := r.sent.Load()
			do(n)
			write()
			m.AwaitActive(what)
			each = min(each, r.sent.Load()-before) // pings come in between, the more the longer it takes
		}
		figures.add(t, "%s among 20,000: %d B, active %s later; all of them: %d B", what, each, (time.Since(began) / changes).Round(time.Millisecond), all)
		if each >= 1000 { // several members, or as many pings as come in minutes
			t.Errorf("%s: %d bytes", what, each)
		}
	}
	change("a removal", func(int) { rest = rest[1:] })
	change("an addition", func(n int) {
		e := endpoint{Address: fmt.Sprintf("192.0.2.%d", n+1), Locality: "r/z1"}
		rest = append(rest, workloads(labels, e)...)
	})
	change("a weight", func(n int) {
		w := rest[n].(workload) //nolint:errcheck,forcetypeassert // each is one
		w.Spec.Weight += 7
		rest[n] = w
	})
	again := func(what string, do func()) {
		before, began := r.sent.Load(), time.Now()
		do()
		await(t, "all members to come again", func() error {
			if n := r.sent.Load() - before; n < all/2 {
				return fmt.Errorf("%d bytes came, and %d at first", n, all)
			}
			return p.Unsettled(t.Context())
		})
		m.AwaitActive(what)
		figures.add(t, "%s among 20,000: %d B, %s later", what, r.sent.Load()-before, time.Since(began).Round(time.Millisecond))
	}
	again("a new connection", func() {
		r.cut()
		r.restore()
	})
	again("a new process, with nothing changed", func() {
		i.Kill()
		i.Serve()
	})
}

// workloads are endpoints that services select by labels.
func workloads(labels map[string]string, endpoints ...endpoint) (list []object) {
	for _, e := range endpoints {
		e.Labels = labels
		list = append(list, workload{Name: "w-" + e.Address, Spec: e})
	}
	return list
}

// awaitServed waits until so many endpoints of a host are in what is served.
func (i *isthmus) awaitServed(t *testing.T, host string, n int) {
	t.Helper()
	await(t, "the folder to be read", func() error {
		var found []listed
		if err := i.ask("/api/v1/services/"+host, &found); err != nil {
			return err
		}
		if len(found) != 1 || len(found[0].Instances) != n {
			return fmt.Errorf("%d services", len(found))
		}
		return nil
	})
}

// relay is a way to a server that can be cut, and counts what comes from there.
type relay struct {
	net.Listener
	address, to netip.AddrPort
	sent        atomic.Int64
	running     sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func startRelay(t *testing.T, to netip.AddrPort) *relay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, address: netip.MustParseAddrPort(listener.Addr().String()), to: to, open: map[net.Conn]struct{}{}}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
		r.running.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		in, err := r.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to.String()) //nolint:noctx // it ends with the listener
		if err != nil || !r.enter(in, out) {
			_ = in.Close()
			continue
		}
		r.running.Go(func() { r.carry(out, in, nil) })
		r.running.Go(func() { r.carry(in, out, &r.sent) })
	}
}

// enter notes a connection; ok is false while the way is cut.
func (r *relay) enter(ends ...net.Conn) (ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		if r.closed {
			_ = c.Close()
		} else {
			r.open[c] = struct{}{}
		}
	}
	return !r.closed
}

func (r *relay) carry(to io.WriteCloser, from io.Reader, count *atomic.Int64) {
	defer to.Close()
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		if count != nil {
			count.Add(int64(n))
		}
		if _, lost := to.Write(room[:n]); err != nil || lost != nil {
			return
		}
	}
}

// cut ends all connections, and any new one at once.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
}

// restore lets connections through again.
func (r *relay) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = false
}

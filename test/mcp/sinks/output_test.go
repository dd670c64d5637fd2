package sinks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
	programs "github.com/isthmus-mesh/isthmus/test/rig/program"
)

const (
	entries = "istio/networking/v1alpha3/serviceentries"
	// patience is how long a test waits for what must come about.
	patience = 3 * time.Minute
)

// output is an Isthmus that reads a folder and serves MCP.
type output struct {
	t                     *testing.T
	folder                string
	address, adminAddress string
}

// program is isthmus.
var program string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-mcp-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "isthmus")
	if err := programs.Build(filepath.Join("..", "..", ".."), programs.Isthmus, program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// newOutput starts one with some ServiceEntries; sinks are dialled.
func newOutput(t *testing.T, services map[string]string, sinks ...string) *output {
	t.Helper()
	o := &output{t: t, folder: t.TempDir(), address: freeAddress(t), adminAddress: freeAddress(t)}
	for name, endpoint := range services {
		o.write(name, endpoint)
	}
	var list strings.Builder
	for _, s := range sinks {
		fmt.Fprintf(&list, "{address: %q}", s)
	}
	config := filepath.Join(t.TempDir(), "isthmus.yaml")
	text := fmt.Sprintf("sources:\n- name: files\n  file: {path: %q}\noutputs:\n  mcp: {listen: %q, sinks: [%s], debounce: {quiet: 100ms}}\nadmin: {listen: %q}\n", o.folder, o.address, list.String(), o.adminAddress)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	served := process.New(filepath.Dir(config), "isthmus", program, "serve", "--config", config)
	if err := served.Start(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = served.Terminate(end)
		if t.Failed() {
			t.Logf("isthmus: %s", served.Log())
		}
	})
	return o
}

// write writes a ServiceEntry with one endpoint.
func (o *output) write(name, endpoint string) {
	o.t.Helper()
	text := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop, labels: {team: a}, annotations: {note: b}}
spec:
  hosts: [%[1]s.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  exportTo: ["."]
  endpoints: [{address: %[2]s}]
`, name, endpoint)
	temporary := filepath.Join(o.t.TempDir(), "next")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(o.folder, name+".yaml")); err != nil {
		o.t.Fatal(err)
	}
}

// stream is what a sink has, in either direction.
type stream interface {
	Send(m *mcp.RequestResources) error
	Recv() (*mcp.Resources, error)
}

// dial opens a stream, once Isthmus serves.
func (o *output) dial() stream {
	o.t.Helper()
	conn, err := grpc.NewClient(o.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	o.t.Cleanup(func() { stop(); _ = conn.Close() })
	s, err := mcp.NewResourceSourceClient(conn).EstablishResourceStream(ctx, grpc.WaitForReady(true))
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// peer is a sink by the rules of the protocol's prose alone.
type peer struct {
	t    *testing.T
	wire stream
	held map[string]*mcp.Resource
}

func (p *peer) send(m *mcp.RequestResources) {
	p.t.Helper()
	m.SinkNode = &mcp.SinkNode{Id: "pilot-1"}
	if err := p.wire.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) receive() *mcp.Resources {
	p.t.Helper()
	m, err := p.wire.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// take applies responses until the sink holds what it should.
func (p *peer) take(incremental bool, whole func() bool) {
	p.t.Helper()
	for !whole() {
		m := p.receive()
		if !m.Incremental || p.held == nil {
			p.held = map[string]*mcp.Resource{}
		}
		for i := range m.Resources {
			p.held[m.Resources[i].Metadata.Name] = m.Resources[i]
		}
		for _, name := range m.RemovedResources {
			delete(p.held, name)
		}
		p.send(&mcp.RequestResources{Collection: m.Collection, ResponseNonce: m.Nonce, Incremental: incremental})
	}
}

// endpoint is the address in a ServiceEntry that the sink holds.
func (p *peer) endpoint(name string) string {
	held := p.held["shop/"+name]
	if held == nil {
		return ""
	}
	var spec networking.ServiceEntry
	if err := proto.Unmarshal(held.Body.Value, &spec); err != nil || len(spec.Endpoints) != 1 {
		p.t.Fatalf("%s: %v, %v", name, &spec, err)
	}
	return spec.Endpoints[0].Address
}

// A sink of another make is sent what a file says, as it changes and goes; what it
// NACKs is shown; and when it comes back it is sent the difference.
func TestSinkOfAnotherMake(t *testing.T) {
	for name, incremental := range map[string]bool{"full states": false, "increments": true} {
		t.Run(name, func(t *testing.T) {
			o := newOutput(t, map[string]string{"one": "192.0.2.1", "two": "192.0.2.2"})
			p := &peer{t: t, wire: o.dial()}
			p.send(&mcp.RequestResources{Collection: entries, Incremental: incremental})
			p.take(incremental, func() bool { return len(p.held) == 2 })
			if got := p.endpoint("one"); got != "192.0.2.1" {
				t.Errorf("the endpoint is %q", got)
			}
			if m := p.held["shop/one"].Metadata; m.Labels["team"] != "a" || m.Annotations["note"] != "b" || m.Version == "" {
				t.Errorf("the metadata is %v", m)
			}
			o.write("two", "192.0.2.3")
			p.take(incremental, func() bool { return p.endpoint("two") == "192.0.2.3" })
			o.write("three", "192.0.2.4")
			m := p.receive()
			p.send(&mcp.RequestResources{
				Collection: entries, ResponseNonce: m.Nonce, Incremental: incremental,
				ErrorDetail: &status.Status{Code: int32(codes.InvalidArgument), Message: "three is not for me"},
			})
			o.awaitNACK("pilot-1", "three is not for me")
			versions := map[string]string{}
			for name, r := range p.held {
				versions[name] = r.Metadata.Version
			}
			if err := os.Remove(filepath.Join(o.folder, "one.yaml")); err != nil {
				t.Fatal(err)
			}
			back := &peer{t: t, wire: o.dial(), held: p.held}
			back.send(&mcp.RequestResources{Collection: entries, Incremental: incremental, InitialResourceVersions: versions})
			back.take(incremental, func() bool { return back.endpoint("three") != "" && back.endpoint("one") == "" })
		})
	}
}

// awaitNACK waits until the admin API shows why a sink NACKed.
func (o *output) awaitNACK(id, reason string) {
	o.t.Helper()
	var shown string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var clients []struct {
			ID    string `json:"id"`
			Types map[string]struct {
				LastNACK struct {
					Reason string `json:"reason"`
				} `json:"lastNack"`
			} `json:"types"`
		}
		answer, err := http.Get("http://" + o.adminAddress + "/api/v1/clients")
		if err != nil {
			o.t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(&clients)
		_ = answer.Body.Close()
		shown = fmt.Sprint(clients, err)
		for _, c := range clients {
			if c.ID == id && c.Types[entries].LastNACK.Reason == reason {
				return
			}
		}
	}
	o.t.Fatalf("the clients are %s", shown)
}

// listener is a sink that is dialled.
type listener struct {
	mcp.UnimplementedResourceSinkServer
	began chan mcp.ResourceSink_EstablishResourceStreamServer
}

func (l *listener) EstablishResourceStream(s mcp.ResourceSink_EstablishResourceStreamServer) error {
	l.began <- s
	<-s.Context().Done()
	return nil
}

// Isthmus dials a sink of another make, and gets past its handshake.
func TestSinkOfAnotherMakeIsDialled(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, sink := grpc.NewServer(), &listener{began: make(chan mcp.ResourceSink_EstablishResourceStreamServer, 1)}
	mcp.RegisterResourceSinkServer(server, sink)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	o := newOutput(t, map[string]string{"one": "192.0.2.1"}, l.Addr().String())
	p := &peer{t: t, wire: <-sink.began}
	trigger := p.receive()
	if trigger.Collection != "$triggerCollection" {
		t.Fatalf("the first message is %v", trigger)
	}
	p.send(&mcp.RequestResources{Collection: entries, Incremental: true})
	p.send(&mcp.RequestResources{
		Collection: trigger.Collection, ResponseNonce: trigger.Nonce,
		ErrorDetail: &status.Status{Code: int32(codes.Unimplemented), Message: "unsupported collection"},
	})
	p.take(true, func() bool { return p.endpoint("one") == "192.0.2.1" })
	o.write("one", "192.0.2.9")
	p.take(true, func() bool { return p.endpoint("one") == "192.0.2.9" })
}

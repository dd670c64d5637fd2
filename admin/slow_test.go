package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const bigPage = "/api/v1/services"

// crowded is a server of so many services, on a listener.
func crowded(t *testing.T, services int, listener net.Listener) {
	t.Helper()
	var events []model.Event
	for i := range services {
		host := fmt.Sprintf("service-%d.some-namespace.svc.cluster.local", i)
		events = append(events, model.Upsert{Record: model.Record{
			Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: "files", Namespace: "shop", Name: host}},
			Spec: model.Service{Hosts: model.ListOf(host), Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}), Resolution: model.ResolutionStatic},
		}})
	}
	builder := catalog.NewBuilder([]string{"files"})
	builder.Apply(1, events)
	snapshot := builder.Snapshot()
	server := admin.New(admin.Parts{
		Sources: func() []*supervise.Supervisor { return nil }, Snapshot: func() *catalog.Snapshot { return snapshot },
		Config: func() admin.Config { return admin.Config{} }, Missing: func() []admin.Obstacle { return nil }, Stuck: func() string { return "" },
		Metrics: prometheus.NewRegistry(),
	})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // those that do not read are not waited for
		server.Stop(ended)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// askFor asks for a page on a connection, of which nothing has been read yet.
func askFor(t *testing.T, conn net.Conn, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Error(err)
	}
}

// listOf reads a page that is a list, and says how long that is.
func listOf(from io.Reader) (n int, err error) {
	answer, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var list []json.RawMessage
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("it answers %s", answer.Status)
	}
	err = json.NewDecoder(answer.Body).Decode(&list)
	return len(list), err
}

// unhurried reads some bytes at a time, with a rest after each.
type unhurried struct {
	io.Reader
	most int
	rest time.Duration
}

func (u unhurried) Read(b []byte) (int, error) {
	time.Sleep(u.rest)
	return u.Reader.Read(b[:min(len(b), u.most)])
}

// Who reads a page, however slowly, gets all of it; who does not is closed.
func TestSlowReaderGetsItsPageAndWhoDoesNotReadIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = 2000
		listener := bufconn.Listen(4 << 10)
		crowded(t, services, listener)
		dial := func() net.Conn {
			conn, err := listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		slow, never := dial(), dial()
		askFor(t, never, bigPage)
		askFor(t, slow, bigPage)
		begin := time.Now()
		if n, err := listOf(unhurried{slow, 4 << 10, 500 * time.Millisecond}); n != services || err != nil {
			t.Errorf("the slow reader gets %d services, %v", n, err)
		}
		if took := time.Since(begin); took < time.Minute {
			t.Errorf("it took %s, which is not slow", took)
		}
		if n, err := io.Copy(io.Discard, never); err != nil || n > 64<<10 {
			t.Errorf("who did not read for a minute gets %d bytes, %v", n, err)
		}
	})
}

// Many who do not read their page make nobody wait, and cost little.
func TestManySlowReadersCostLittle(t *testing.T) {
	const services, readers, each = 5000, 200, 200 << 10
	listener := narrow{loopback(t)}
	crowded(t, services, listener)
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	before := inUse()
	for range readers {
		conn := dial()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		askFor(t, conn, bigPage)
	}
	var most uint64
	for range 5 {
		until.NoError(t, time.Millisecond, "one more reader to get the page", func() error {
			conn := dial() // who is asked to try again, as on a busy machine, may
			askFor(t, conn, bigPage)
			n, err := listOf(conn)
			if err == nil && n != services {
				t.Errorf("it gets %d services", n)
			}
			return err
		})
		most = max(most, inUse())
	}
	if most > before+readers*each {
		t.Errorf("they pin %d KiB, of which each may pin %d", (most-before)>>10, each>>10)
	}
}

// narrow is a listener whose sockets hold little of a page.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if conn, ok := conn.(*net.TCPConn); ok {
		_ = conn.SetWriteBuffer(4 << 10)
	}
	return conn, err
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

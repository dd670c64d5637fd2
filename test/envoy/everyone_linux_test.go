package envoy_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// everyone is the server of every endpoint there can be. Whatever it is spoken to in, it
// answers with the address and port that the connection was meant for.
type everyone struct {
	t        *testing.T
	identity *tls.Config
	running  sync.WaitGroup
}

// answering is its port.
const answering = 19999

// startEveryone starts it, and returns its certificate in PEM.
func startEveryone(t *testing.T) []byte {
	t.Helper()
	return startEveryoneAs(t, nil)
}

// startEveryoneAs starts it with a certificate for mutual TLS of a mesh, which asks for the client's.
func startEveryoneAs(t *testing.T, inMesh *tls.Certificate) []byte {
	t.Helper()
	e := &everyone{t: t, identity: selfSigned(t)}
	e.identity.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if inMesh == nil || !strings.HasPrefix(hello.ServerName, "outbound_.") {
			return nil, nil
		}
		return &tls.Config{Certificates: []tls.Certificate{*inMesh}, ClientAuth: tls.RequireAnyClientCert}, nil
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols: protocols, ReadHeaderTimeout: until.Patience,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, e, c.(*peeked).meant)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(answeredBy, r.Context().Value(e).(string))
		}),
	}
	queue := &queue{make(chan net.Conn), make(chan struct{}), sync.Once{}}
	listeners := []net.Listener{listen(t, "127.0.0.1", answering), listen(t, "[::1]", answering)}
	socket, err := net.Listen("unix", abstract)
	if err != nil {
		t.Fatal(err)
	}
	listeners = append(listeners, socket)
	e.running.Go(func() { _ = server.Serve(queue) })
	for _, l := range listeners {
		e.running.Go(func() { e.accept(l, queue) })
	}
	t.Cleanup(func() {
		for _, l := range listeners {
			_ = l.Close()
		}
		_ = server.Close()
		e.running.Wait()
	})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.identity.Certificates[0].Certificate[0]})
}

func (e *everyone) accept(l net.Listener, q *queue) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		e.running.Go(func() { e.serve(c, q) })
	}
}

// serve finds out from the first byte what a connection carries.
func (e *everyone) serve(c net.Conn, q *queue) {
	p := &peeked{Conn: c, reader: bufio.NewReader(c)}
	var err error
	if p.meant, err = meantFor(c); err != nil {
		e.t.Errorf("a connection from %s: %v", c.RemoteAddr(), err)
	}
	_ = c.SetDeadline(time.Now().Add(until.Patience))
	first, err := p.reader.Peek(1)
	switch {
	case err != nil:
	case first[0] == 'G' || first[0] == 'P': // GET, PRI
		_ = c.SetDeadline(time.Time{})
		select {
		case q.waiting <- p:
			return
		case <-q.closed:
		}
	case first[0] == 0x16:
		secure := tls.Server(p, e.identity)
		_, _ = io.WriteString(secure, p.meant+"\n")
		_ = secure.Close()
	default:
		if _, err := p.reader.ReadString('\n'); err == nil {
			_, _ = io.WriteString(c, p.meant+"\n")
		}
	}
	_ = c.Close()
}

// meantFor is where a connection went before it was redirected.
func meantFor(c net.Conn) (string, error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return abstract, nil
	}
	at, err := netns.OriginalDestination(t)
	return at.String(), err
}

// peeked is a connection of which something has been read already.
type peeked struct {
	net.Conn
	reader *bufio.Reader
	meant  string
}

func (p *peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

// queue is a listener of connections that others accepted.
type queue struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.waiting:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *queue) Addr() net.Addr { return &net.TCPAddr{} }

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"*.example"}}
	certificate, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
}

// made makes the call. The outcome is the endpoint that answered, the status of a response
// of Envoy's own, [closed] or [refused].
func (c call) made(ctx context.Context, mark int) string {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	dialer := net.Dialer{LocalAddr: c.from(), Control: netns.Marked(mark)}
	connection, err := dialer.DialContext(ctx, "tcp", c.to.String())
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return refused
	case err != nil:
		return err.Error()
	}
	defer connection.Close()
	// Nothing of the connection should stay: there are tens of thousands.
	_ = connection.(*net.TCPConn).SetLinger(0)
	deadline, _ := ctx.Deadline()
	_ = connection.SetDeadline(deadline)
	switch c.says {
	case inTLS:
		connection = tls.Client(connection, &tls.Config{ServerName: c.host, InsecureSkipVerify: true})
	case inLine:
		_, err = io.WriteString(connection, "who is there?\n")
	default:
		return c.requested(ctx, connection)
	}
	var line string
	if err == nil {
		line, err = bufio.NewReader(connection).ReadString('\n')
	}
	return outcomeOf(strings.TrimSpace(line), err)
}

func outcomeOf(outcome string, err error) string {
	var late net.Error
	switch {
	case err == nil:
		return outcome
	case errors.As(err, &late) && late.Timeout():
		return "no answer in time"
	default:
		return closed
	}
}

// from is an address of the caller: connections of one would run out of ports. Of IPv6
// none but the one that is called can be had.
func (c call) from() net.Addr {
	if c.to.Addr().Is6() {
		return nil
	}
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(mathrand.IntN(250)), byte(1+mathrand.IntN(250)))}
}

func (c call) requested(ctx context.Context, connection net.Conn) string {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(c.says == inHTTP)
	protocols.SetUnencryptedHTTP2(c.says == inHTTP2)
	transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil }}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.to.String()+"/", http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Host = c.host
	response, err := transport.RoundTrip(request)
	if err != nil {
		return outcomeOf("", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if by := response.Header.Get(answeredBy); by != "" {
		return by
	}
	return fmt.Sprint("status ", response.StatusCode)
}

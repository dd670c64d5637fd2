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
)

// echoes is the header of a call that asks a backend to return each line.
const echoes = "echoes"

// echo answers a call that goes on: a WebSocket, or a stream of HTTP/2.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			_, _ = fmt.Fprintln(w, in.Text())
			_ = control.Flush()
		}
		return
	}
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	_, _ = fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n%s: %s\r\n\r\n", answeredBy, w.Header().Get(answeredBy))
	_, _ = io.Copy(connection, buffered)
}

// longCall is a call that goes on.
type longCall struct {
	name  string
	by    string // the service of the backend
	to    io.Writer
	from  *bufio.Reader
	lines int
	close func()
}

// Alive sends a line, which must come back.
func (l *longCall) Alive() error {
	l.lines++
	line := fmt.Sprint("line ", l.lines)
	if _, err := fmt.Fprintln(l.to, line); err != nil {
		return fmt.Errorf("%s, answered by %s: line %d: %w", l.name, l.by, l.lines, err)
	}
	if got, err := l.from.ReadString('\n'); err != nil || strings.TrimSpace(got) != line {
		return fmt.Errorf("%s, answered by %s: line %d returns as %q: %w", l.name, l.by, l.lines, got, err)
	}
	return nil
}

// openUpgraded opens a WebSocket. The frames are lines: no Envoy reads them.
func openUpgraded(ctx context.Context, address, host string) (*longCall, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", echoes: "yes"} {
		request.Header.Set(name, value)
	}
	from := bufio.NewReader(connection)
	err = request.Write(connection)
	if err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(from, request); err == nil {
			if response.StatusCode == http.StatusSwitchingProtocols {
				return &longCall{name: "a WebSocket to " + address, by: response.Header.Get(answeredBy), to: connection, from: from, close: func() { _ = connection.Close() }}, nil
			}
			err = errors.New(response.Status)
		}
	}
	_ = connection.Close()
	return nil, err
}

// openStream opens a stream of HTTP/2 on a connection of its own.
func openStream(ctx context.Context, address, host string) (*longCall, error) {
	transport := overHTTP2()
	in, out := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/", in)
	if err != nil {
		return nil, err
	}
	request.Host = host
	request.Header.Set(echoes, "yes")
	response, err := transport.RoundTrip(request)
	if err == nil && response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		err = errors.New(response.Status)
	}
	if err != nil {
		_ = out.Close()
		transport.CloseIdleConnections()
		return nil, err
	}
	return &longCall{name: "a stream to " + address, by: response.Header.Get(answeredBy), to: out, from: bufio.NewReader(response.Body), close: func() {
		_ = out.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	}}, nil
}

// overHTTP2 is a transport that speaks HTTP/2 alone, without TLS.
func overHTTP2() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols}
}

package envoy_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// way is an Envoy, and how callers get to services and to its workload through it.
type way struct {
	*proxy.Proxy
	at       func(o offer) string // where a service is called, with the port; empty if it is not
	workload string               // where it is called; empty if there is none
}

// takes reports whether a service is called through the Envoy.
func (w way) takes(o offer) bool { return w.at(o) != "" }

// called makes one call, which the right service has to answer. Requests go over
// connections of the transport, everything else over one of its own.
func (w way) called(ctx context.Context, transport *http.Transport, service string, o offer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	at := w.at(o)
	var by string
	switch o.Kind {
	case byAddress:
		by, err = askedByLine(ctx, at)
	case byHandshake:
		by, err = askedSecurely(ctx, at, o.Host)
	default:
		by, err = askedByRequest(ctx, transport, at, o.Host)
	}
	if err == nil && by != service {
		err = fmt.Errorf("%q answered, not %s", by, service)
	}
	return err
}

// anew is a transport on which every request has a connection of its own.
func anew() *http.Transport { return &http.Transport{DisableKeepAlives: true} }

// askedByRequest makes a request, and says who answered: a backend of a service says so
// in a header, a workload with its body.
func askedByRequest(ctx context.Context, transport *http.Transport, at, host string) (by string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Host = host
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %.200s", response.Status, body))
	}
	return cmp.Or(response.Header.Get(answeredBy), string(body)), err
}

func askedByLine(ctx context.Context, at string) (by string, err error) {
	connection, err := dialled(ctx, at)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return askedOn(connection)
}

func askedSecurely(ctx context.Context, at, host string) (by string, err error) {
	connection, err := dialled(ctx, at)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return askedOn(tls.Client(connection, &tls.Config{ServerName: host, InsecureSkipVerify: true})) //nolint:gosec // who answers is asked
}

func dialled(ctx context.Context, at string) (net.Conn, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		err = connection.SetDeadline(end)
	}
	return connection, err
}

func askedOn(connection net.Conn) (by string, err error) {
	if _, err := fmt.Fprintln(connection, "who?"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSpace(line), err
}

// answerLine answers one line with a name.
func answerLine(connection net.Conn, name string) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(until.Patience))
	if _, err := bufio.NewReader(connection).ReadString('\n'); err == nil {
		_, _ = fmt.Fprintln(connection, name)
	}
}

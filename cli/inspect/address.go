package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// baseOf returns the URL of the admin API. A host and port alone is a URL of http.
func baseOf(address string) (*url.URL, error) {
	text := address
	if _, _, err := net.SplitHostPort(text); err == nil && !strings.Contains(text, "/") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("--admin %q is neither a URL nor a host and port, such as http://127.0.0.1:8080 or 127.0.0.1:8080", address)
	}
	return base, nil
}

// errXDS is the error of an address that is no admin API but speaks gRPC.
var errXDS = errors.New("this speaks gRPC, so it is probably the xDS port; the admin API has a port of its own: " +
	"admin.listen in the configuration, by default 127.0.0.1:8080, and admin= in the log line \"serving\"")

// isGRPC reports whether an answer, or the error in place of one, is that of a gRPC
// server: it begins with settings, and over TLS it does not accept other types of content.
func isGRPC(response *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, errXDS)
	}
	return strings.HasPrefix(response.Header.Get("Content-Type"), "application/grpc") ||
		response.ProtoMajor == 2 && response.StatusCode == http.StatusUnsupportedMediaType
}

// adminConn is a connection to an admin API. It fails with [errXDS] if the server begins
// with a settings frame of HTTP/2, as gRPC servers do, be it before or after the request
// arrives.
type adminConn struct {
	net.Conn
	begun bool
}

func dialAdmin(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &adminConn{Conn: conn}, nil
}

// Read implements [net.Conn].
func (c *adminConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.begun && n > 0 && b[0] == 0 { // the length of a frame; HTTP/1 begins with text, and TLS with another number
		return 0, errXDS
	}
	c.begun = c.begun || n > 0
	return n, err
}

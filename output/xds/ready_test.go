package xds_test

import (
	"net"
	"testing"
)

// A connection that says nothing has no buffer to read into: most of them say
// nothing most of the time.
func TestIdleConnectionHasNoBuffer(t *testing.T) {
	const connections, buffer = 200, 16 << 10
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	r := newProbed(t)
	before := heap()
	for range connections {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte(preface + settings)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the server's settings
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+connections*buffer {
		t.Errorf("%d connections that say nothing cost %d bytes each", connections, (after-before)/connections)
	}
}

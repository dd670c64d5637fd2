package xds_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// Frames of HTTP/2, written by hand: a library would not send what a test needs.
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	framePing    = 0x6

	frameWindowUpdate = 0x8

	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" // and empty settings
)

func http2Frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(b, flags), stream), payload...)
}

// opening is the frame that opens a stream of a method.
func opening(stream uint32, method string) []byte {
	const endHeaders = 0x4
	var block []byte
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "isthmus"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		block = append(block, 0) // literal, not to be remembered, with a new name
		for _, text := range field {
			block = append(append(block, byte(len(text))), text...)
		}
	}
	return http2Frame(frameHeaders, endHeaders, stream, block)
}

func resetting(stream uint32) []byte { return http2Frame(frameReset, 0, stream, []byte{0, 0, 0, 8}) }

// saying is a frame with the beginning of a message: its header, with the length
// that it is to have, and what there is of it.
func saying(stream uint32, length int, text []byte) []byte {
	return http2Frame(frameData, 0, stream, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(length)), text...))
}

// wired is a connection of which a test writes every byte. Of what comes back it
// remembers how much more the server lets streams send.
type wired struct {
	net.Conn
	t       *testing.T
	granted *atomic.Int64
	ended   chan struct{} // closed when the server has closed it
}

func (r *rig) wired(t *testing.T) wired {
	t.Helper()
	conn, err := r.memory.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := wired{conn, t, new(atomic.Int64), make(chan struct{})}
	go w.read()
	t.Cleanup(func() { _ = conn.Close() })
	w.send([]byte(http2Preface))
	return w
}

// read reads frames until the server closes the connection.
func (w wired) read() {
	defer close(w.ended)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(w, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(w, payload); err != nil {
			return
		}
		if of := binary.BigEndian.Uint32(head[5:]); head[3] == frameWindowUpdate && of != 0 {
			w.granted.Add(int64(binary.BigEndian.Uint32(payload)))
		}
	}
}

// send writes bytes for as long as the server takes them.
func (w wired) send(text []byte) { _, _ = w.Write(text) }

func (w wired) closed() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

func marshalled(t *testing.T, m *discoveryv3.DeltaDiscoveryRequest) []byte {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

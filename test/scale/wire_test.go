package scale

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of DiscoveryResponse and DeltaDiscoveryResponse, as far as they are
// the same in both, and of Resource.
const (
	responseVersion   = 1
	responseResources = 2
	responseTypeURL   = 4
	responseNonce     = 5

	resourceVersion = 1
	resourceName    = 3
)

// response is what a client reads of a response of either variant.
type response struct {
	version, typeURL, nonce string
	resources               int
	bytes                   int

	// versions of a delta response's resources by name, if they are to be recorded.
	versions  map[string]string
	recording bool
}

// request is a message as it is sent: a part that is the same each time, and
// the rest. Fields of a message may come in any order.
type request struct{ fixed, rest []byte }

// codec passes requests on as they are and reads responses no further than needed.
type codec struct{}

// Name is that of the format: clients of any other codec send the same bytes.
func (codec) Name() string { return "proto" }

// Marshal implements [google.golang.org/grpc/encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	r := v.(request)
	return mem.BufferSlice{mem.SliceBuffer(r.fixed), mem.SliceBuffer(r.rest)}, nil
}

// Unmarshal implements [google.golang.org/grpc/encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r := v.(*response)
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	*r = response{recording: r.recording, bytes: data.Len()}
	if r.recording {
		r.versions = map[string]string{}
	}
	return eachField(whole.ReadOnlyData(), func(field int, value []byte) error {
		switch field {
		case responseVersion:
			r.version = string(value)
		case responseTypeURL:
			r.typeURL = string(value)
		case responseNonce:
			r.nonce = string(value)
		case responseResources:
			r.resources++
			if r.recording {
				return r.record(value)
			}
		}
		return nil
	})
}

// record reads which version of what a resource of a delta response is.
func (r *response) record(resource []byte) error {
	var name, version string
	err := eachField(resource, func(field int, value []byte) error {
		switch field {
		case resourceName:
			name = string(value)
		case resourceVersion:
			version = string(value)
		}
		return nil
	})
	r.versions[name] = version
	return err
}

// eachField calls visit for the fields of a message, all of which are of
// variable length.
func eachField(b []byte, visit func(field int, value []byte) error) error {
	for len(b) > 0 {
		field, _, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("a field of a response: %w", protowire.ParseError(n))
		}
		value, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return fmt.Errorf("field %d of a response: %w", field, protowire.ParseError(m))
		}
		if err := visit(int(field), value); err != nil {
			return err
		}
		b = b[n+m:]
	}
	return nil
}

// meter counts the bytes that connections carry, all of HTTP/2 included.
type meter struct{ received, sent atomic.Int64 }

type meteredConn struct {
	net.Conn
	*meter
}

func (c meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

const typePrefix = "type.googleapis.com/envoy.config."

// Type URLs of what clients ask for.
const (
	clusters    = typePrefix + "cluster.v3.Cluster"
	assignments = typePrefix + "endpoint.v3.ClusterLoadAssignment"
	listeners   = typePrefix + "listener.v3.Listener"
	routes      = typePrefix + "route.v3.RouteConfiguration"
)

// short is how a type is called in results.
func short(typeURL string) string {
	_, name, _ := strings.Cut(strings.TrimPrefix(typeURL, typePrefix), ".v3.")
	return name
}

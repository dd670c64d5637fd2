package wire

import (
	"hash/maphash"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Request is a request of either variant.
type Request struct {
	Node    *corev3.Node
	TypeURL string
	Nonce   string
	NACK    bool   // the request has an error detail
	Reason  string // of the NACK, cut to [streams.ReasonBytes]

	// State of the world. Each request lists all names again, even a mere ACK.
	Version string // the last accepted version
	Names   []string
	Digest  uint64 // of the names as they are on the wire; never 0
	Same    bool   // the names equal the last listed ones, and were not decoded

	// Delta.
	Subscribe, Unsubscribe []string
	Held                   map[string]string // versions of resources by name
}

// Decoder decodes the requests of one variant.
type Decoder struct {
	Mode   world.Mode
	Limits Limits
	Seed   maphash.Seed // of digests
}

// Decode reads a request within the limits. listed returns the digest of the names that a
// stream has listed of a type, 0 without any; it is nil for a first request.
func (d *Decoder) Decode(text []byte, listed func(typeURL string) uint64) (*Request, error) {
	if err := d.Limits.measure(text, d.Mode); err != nil {
		return nil, err
	}
	if d.Mode == world.WholeState {
		return d.wholeState(text, listed)
	}
	m := new(discoveryv3.DeltaDiscoveryRequest)
	if err := proto.Unmarshal(text, m); err != nil {
		return nil, errNoRequest
	}
	r := &Request{
		Node: m.GetNode(), TypeURL: m.GetTypeUrl(), Nonce: m.GetResponseNonce(),
		Subscribe: m.GetResourceNamesSubscribe(), Unsubscribe: m.GetResourceNamesUnsubscribe(), Held: m.GetInitialResourceVersions(),
	}
	r.detail(m.GetErrorDetail())
	return r, nil
}

// wholeState decodes a request of the state of the world, without its names if the client has
// listed the same ones before. Decoding the same names every time would be most of the cost
// of such a client. The fields have been measured, so all of them are whole.
func (d *Decoder) wholeState(text []byte, listed func(typeURL string) uint64) (*Request, error) {
	r := new(Request)
	var room [512]byte
	var typeURL, rest []byte
	r.Digest, typeURL, rest = digest(d.Seed, text, room[:0])
	if listed != nil && listed(string(typeURL)) == r.Digest {
		r.Same, text = true, rest
	}
	m := new(discoveryv3.DiscoveryRequest)
	if err := proto.Unmarshal(text, m); err != nil {
		return nil, errNoRequest
	}
	r.Node, r.TypeURL, r.Nonce, r.Version, r.Names = m.GetNode(), m.GetTypeUrl(), m.GetResponseNonce(), m.GetVersionInfo(), m.GetResourceNames()
	r.detail(m.GetErrorDetail())
	return r, nil
}

// detail makes a request with an error detail a NACK, whatever version it carries.
func (r *Request) detail(s *status.Status) {
	if s != nil {
		r.NACK, r.Reason = true, streams.Cut(strings.TrimSpace(s.GetMessage()), streams.ReasonBytes)
	}
}

var errNoRequest = grpcstatus.Error(codes.InvalidArgument, "the message is not a discovery request")

// Fields of envoy.service.discovery.v3.DiscoveryRequest.
const (
	fieldNames       = 3
	fieldRequestType = 4
)

// digest hashes the names of a request, and finds its type. It appends the fields other
// than names to rest. The hash is never 0.
func digest(seed maphash.Seed, text, rest []byte) (sum uint64, typeURL, other []byte) {
	var h maphash.Hash
	h.SetSeed(seed)
	for len(text) > 0 {
		if size, _ := run(text); size > 0 {
			_, _ = h.Write(text[:size]) // never fails
			text = text[size:]
			continue
		}
		number, kind, n := protowire.ConsumeTag(text)
		size := n + protowire.ConsumeFieldValue(number, kind, text[n:])
		if number == fieldNames && kind == protowire.BytesType { // an encoding that no known client uses
			_, _ = h.Write(text[:size])
		} else {
			rest = append(rest, text[:size]...)
		}
		if number == fieldRequestType && kind == protowire.BytesType {
			typeURL, _ = protowire.ConsumeBytes(text[n:])
		}
		text = text[size:]
	}
	return max(h.Sum64(), 1), typeURL, rest
}

// nameTag is the first byte of each name of a request, in either variant.
const nameTag = fieldNames<<3 | byte(protowire.BytesType)

// run returns the length and number of consecutive names at the begin of a message. Nearly
// all of a client's bytes are one such run, and parsing each name like any other field
// would be most of the cost of its ACK. An incomplete name ends the run.
func run(text []byte) (size, names int) {
	for size < len(text) && text[size] == nameTag {
		length, n := protowire.ConsumeVarint(text[size+1:])
		end := size + 1 + n
		if n < 0 || length > uint64(len(text)-end) { //nolint:gosec // end is not beyond the text
			break
		}
		size = end + int(length) //nolint:gosec // it is no more than there is
		names++
	}
	return size, names
}

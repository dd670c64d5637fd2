package xds

import (
	"hash/maphash"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/push"
)

// sotwMessage is a request of the state-of-the-world variant. Each request lists all names
// again, even a mere ACK: decoding the same names every time would be most of the cost of
// such a client.
type sotwMessage struct {
	*discoveryv3.DiscoveryRequest
	digest uint64 // of the names as they are on the wire
	same   bool   // the names equal the last listed ones, and were not decoded
}

// Fields of envoy.service.discovery.v3.DiscoveryRequest.
const (
	fieldNames       = 3
	fieldRequestType = 4
)

// decodeSotw decodes a request, without its names if the client has listed the
// same ones before. The fields have been measured, so all of them are whole.
func (s *Server) decodeSotw(text []byte, listed func(typeURL string) uint64) (request, error) {
	m := &sotwMessage{DiscoveryRequest: new(discoveryv3.DiscoveryRequest)}
	var room [512]byte
	var typeURL, rest []byte
	m.digest, typeURL, rest = digest(s.seed, text, room[:0])
	if listed != nil && listed(string(typeURL)) == m.digest {
		m.same, text = true, rest
	}
	if err := proto.Unmarshal(text, m.DiscoveryRequest); err != nil {
		return nil, errNoRequest
	}
	return m, nil
}

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

// listed returns the digest of the names that the engine has of a type.
func (s *stream) listed(typeURL string) uint64 {
	t := s.only
	if t == every {
		var known bool
		if t, known = s.versions[typeURL]; !known {
			t, known = s.server.engine.Type(typeURL)
		}
		if !known {
			return 0
		}
	}
	return s.subscriber.Listed(t)
}

// sotwRequest turns a message into the engine's terms. A message with another nonce than
// the newest response's crossed that response in flight.
func (s *stream) sotwRequest(t push.Type, m *sotwMessage) push.Request {
	r := push.Request{Type: t, Mode: push.WholeState, Answer: s.answerOf(t, m), Replace: true, Digest: m.digest}
	// The first request of a type may carry any nonce. A change of subscription that answers
	// nothing may carry none.
	latest, nonce := s.latest(t), m.GetResponseNonce()
	r.Overtaken = latest != 0 && nonce != "" && nonce != nonceOf(latest)
	r.Claim = claimOf(m.GetVersionInfo())
	r = s.resumes(t, r)
	of := s.of(t)
	if !m.same {
		r.Names, of.wildcard = of.subscription(m.GetResourceNames(), s.server.engine.Whole(t))
	}
	r.Wildcard = of.wildcard
	return r
}

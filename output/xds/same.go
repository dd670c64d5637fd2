package xds

import (
	"hash/maphash"
	"iter"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/push"
)

// sotwMessage is a request of the state-of-the-world variant. Each of them lists
// all names again, also one that only ACKs: to decode the same names every time
// would be most of what such a client costs.
type sotwMessage struct {
	*discoveryv3.DiscoveryRequest
	digest uint64 // of the names as they are on the wire
	same   bool   // they are those listed before, and were not decoded
}

// Fields of envoy.service.discovery.v3.DiscoveryRequest.
const (
	fieldNames       = 3
	fieldRequestType = 4
)

// decodeSotw decodes a request, without its names if the client has listed the
// same ones before. The fields have been measured, so all of them are whole.
func (in *incoming) decodeSotw(text []byte) {
	m := &sotwMessage{DiscoveryRequest: new(discoveryv3.DiscoveryRequest)}
	var typeURL []byte
	m.digest, typeURL = digest(in.server.seed, text)
	if in.listed != nil && in.listed(string(typeURL)) == m.digest {
		m.same, text = true, withoutNames(text)
	}
	if err := proto.Unmarshal(text, m.DiscoveryRequest); err != nil {
		in.refused = errNoRequest
		return
	}
	in.request = m
}

// digest hashes the names of a request, and finds the type that it is about. It
// is never 0.
func digest(seed maphash.Seed, text []byte) (sum uint64, typeURL []byte) {
	var h maphash.Hash
	h.SetSeed(seed)
	for number, f := range fields(text) {
		if number == fieldNames {
			_, _ = h.Write(f.whole) // never fails
		}
		if number == fieldRequestType {
			typeURL, _ = protowire.ConsumeBytes(f.value)
		}
	}
	return max(h.Sum64(), 1), typeURL
}

// withoutNames returns a request's other fields.
func withoutNames(text []byte) (rest []byte) {
	for number, f := range fields(text) {
		if number != fieldNames {
			rest = append(rest, f.whole...)
		}
	}
	return rest
}

// field is one on the wire: as a whole, and its value alone.
type field struct{ whole, value []byte }

// fields yields the fields of a message.
func fields(text []byte) iter.Seq2[protowire.Number, field] {
	return func(yield func(protowire.Number, field) bool) {
		for len(text) > 0 {
			number, kind, n := protowire.ConsumeTag(text)
			if n < 0 {
				return
			}
			size := protowire.ConsumeFieldValue(number, kind, text[n:])
			if size < 0 || !yield(number, field{text[:n+size], text[n : n+size]}) {
				return
			}
			text = text[n+size:]
		}
	}
}

// listed is the digest of the names that the engine has of a type.
func (s *stream) listed(typeURL string) uint64 {
	t := s.only
	if t == every {
		var known bool
		if t, known = s.server.engine.Type(typeURL); !known {
			return 0
		}
	}
	return s.subscriber.Listed(t)
}

// sotwRequest turns a message into the engine's terms. One whose nonce is not
// that of the newest response crossed it on the way.
func (s *stream) sotwRequest(t push.Type, m *sotwMessage) push.Request {
	r := push.Request{Type: t, Mode: push.WholeState, Answer: s.answerOf(t, m), Replace: true, Digest: m.digest}
	// The first request of a type may carry any nonce, and a change of
	// subscription that answers nothing may carry none.
	latest, nonce := s.latest(t), m.GetResponseNonce()
	r.Overtaken = latest != 0 && nonce != "" && nonce != nonceOf(latest)
	r.Claim = claimOf(m.GetVersionInfo())
	of := s.of(t)
	if !m.same {
		r.Names, of.wildcard = of.subscription(m.GetResourceNames(), s.server.engine.Whole(t))
	}
	r.Wildcard = of.wildcard
	return r
}

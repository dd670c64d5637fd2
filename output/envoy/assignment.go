package envoy

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// assignment is what a ClusterLoadAssignment is made of. The service's
// definition has no part in it.
type assignment struct {
	assignmentSlot
	endpoints *catalog.Endpoints
	order     order
}

// assignmentSlot tells the variants of a load assignment apart.
type assignmentSlot struct {
	slot
	byWeight bool                   // the weights of endpoints are those of localities
	from     standpoint             // of the clients, as far as it matters in the order
	via      *policy.RemoteGateways // to endpoints of other networks; nil if there are none
	avoids   avoided                // by the client, which is an edge
}

// Slot implements [push.Subject].
func (s assignmentSlot) Slot() any { return s }

// Encode implements [push.Subject].
func (a assignment) Encode() push.Encoded {
	d := &draft{name: a.clusterName(), of: a.subset, from: a.from, order: a.order, via: a.via, avoids: a.avoids}
	if a.byWeight {
		d.tellWeightsApart(a.endpoints)
	}
	d.fill(a.endpoints, reachable)
	return d.encode()
}

func encodeAssignment(name string, endpoints *catalog.Endpoints) push.Encoded {
	return newDraft(name, endpoints, reachable).encode()
}

// encode writes the assignment by hand: it is what a change of an endpoint
// costs, and building the messages first would cost several times as much. A test
// holds it to what the generated code reads.
func (d *draft) encode() push.Encoded {
	body := make([]byte, 0, anyHeadSize(endpointURL, d.size)+d.size)
	body = d.appendTo(appendAnyHead(body, endpointURL, d.size))
	return push.Encoded{Name: d.name, Version: versionOf(body), Body: body}
}

// Numbers of fields. All are below 16, so every tag is one byte.
const (
	tagSize = 1

	claName      = 1 // ClusterLoadAssignment
	claEndpoints = 2

	localityID        = 1 // LocalityLbEndpoints
	localityEndpoints = 2
	localityWeight    = 3
	localityPriority  = 5

	localityRegion  = 1 // core.Locality
	localityZone    = 2
	localitySubZone = 3

	lbEndpoint = 1 // LbEndpoint
	lbWeight   = 4

	endpointAddress = 1 // Endpoint
	endpointAlso    = 4

	alsoAddress = 1 // Endpoint.AdditionalAddress

	addressSocket = 1 // core.Address
	addressPipe   = 2

	socketAddress = 2 // core.SocketAddress
	socketPort    = 3

	pipePath = 1 // core.Pipe

	wrappedValue = 1 // google.protobuf.UInt32Value
)

// measure finds out how long the assignment will be, and the endpoints of each
// group.
func (d *draft) measure() {
	for i := range d.places {
		p := &d.places[i]
		p.group.size += sizeBytes(p.size())
	}
	d.size = sizeString(d.name)
	for _, g := range d.groups {
		d.size += sizeBytes(g.total())
	}
}

// appendTo writes the assignment. Places come by address and not by locality,
// so each is written where its group has got to.
func (d *draft) appendTo(b []byte) []byte {
	b = slices.Grow(b, d.size)
	b = appendString(b, claName, d.name)
	for _, g := range d.groups {
		b = appendHead(b, claEndpoints, g.total())
		b = g.appendLocality(b)
		g.at = len(b)
		b = b[:len(b)+g.size]
		b = appendWrapped(b, localityWeight, g.weight)
		if g.priority > 0 {
			b = appendVarint(b, localityPriority, uint64(g.priority))
		}
	}
	for i := range d.places {
		p := &d.places[i]
		p.group.at = len(p.appendTo(b[:p.group.at]))
	}
	return b
}

// total is the size of the whole group.
func (g *group) total() int {
	size := sizeBytes(g.localitySize()) + g.size + sizeWrapped(g.weight)
	if g.priority > 0 {
		size += tagSize + protowire.SizeVarint(uint64(g.priority))
	}
	return size
}

func (g *group) localitySize() int {
	return sizeString(g.Region) + sizeString(g.Zone) + sizeString(g.SubZone)
}

// appendLocality writes the locality, also if it is empty: gRPC rejects an
// assignment with a group that has none.
func (g *group) appendLocality(b []byte) []byte {
	b = appendHead(b, localityID, g.localitySize())
	b = appendString(b, localityRegion, g.Region)
	b = appendString(b, localityZone, g.Zone)
	return appendString(b, localitySubZone, g.SubZone)
}

// isPipe reports whether the place is a unix socket.
func (p *place) isPipe() bool { return p.port == 0 }

// innermost is the size of the SocketAddress or Pipe.
func (p *place) innermost() int {
	if p.isPipe() {
		return sizeString(p.address)
	}
	return p.socketSize(p.address)
}

func (p *place) socketSize(address string) int {
	return sizeString(address) + tagSize + protowire.SizeVarint(uint64(p.port))
}

// endpointSize is that of the Endpoint.
func (p *place) endpointSize() int {
	size := sizeBytes(sizeBytes(p.innermost()))
	for _, address := range p.also {
		size += sizeBytes(sizeBytes(sizeBytes(p.socketSize(address))))
	}
	return size
}

// size is that of the LbEndpoint.
func (p *place) size() int { return sizeBytes(p.endpointSize()) + sizeWrapped(uint64(p.weight)) }

// appendTo writes the place as an element of its group.
func (p *place) appendTo(b []byte) []byte {
	return p.appendMember(appendHead(b, localityEndpoints, p.size()))
}

// appendMember writes the LbEndpoint itself.
func (p *place) appendMember(b []byte) []byte {
	innermost := p.innermost()
	b = appendHead(b, lbEndpoint, p.endpointSize())
	b = appendHead(b, endpointAddress, sizeBytes(innermost))
	if p.isPipe() {
		b = appendHead(b, addressPipe, innermost)
		b = appendString(b, pipePath, p.address)
	} else {
		b = p.appendSocket(b, p.address)
	}
	for _, address := range p.also {
		size := sizeBytes(p.socketSize(address))
		b = appendHead(b, endpointAlso, sizeBytes(size))
		b = appendHead(b, alsoAddress, size)
		b = p.appendSocket(b, address)
	}
	return appendWrapped(b, lbWeight, uint64(p.weight))
}

func (p *place) appendSocket(b []byte, address string) []byte {
	b = appendHead(b, addressSocket, p.socketSize(address))
	b = appendString(b, socketAddress, address)
	return appendVarint(b, socketPort, uint64(p.port))
}

// sizeBytes is the size of a message or string of n bytes with its head.
func sizeBytes(n int) int { return tagSize + protowire.SizeBytes(n) }

// sizeString is the size of a string field, which is absent if it is empty.
func sizeString(s string) int {
	if s == "" {
		return 0
	}
	return sizeBytes(len(s))
}

// sizeWrapped is the size of a UInt32Value field with a value that is not 0.
func sizeWrapped(v uint64) int { return sizeBytes(tagSize + protowire.SizeVarint(v)) }

func appendHead(b []byte, field byte, size int) []byte {
	if size < 1<<7 { // nearly always: one byte of length, and no call
		return append(b, bytesTag(field), byte(size))
	}
	return protowire.AppendVarint(append(b, bytesTag(field)), uint64(size))
}

func appendString(b []byte, field byte, s string) []byte {
	if s == "" {
		return b
	}
	return append(appendHead(b, field, len(s)), s...)
}

func appendWrapped(b []byte, field byte, v uint64) []byte {
	b = appendHead(b, field, tagSize+protowire.SizeVarint(v))
	return appendVarint(b, wrappedValue, v)
}

func appendVarint(b []byte, field byte, v uint64) []byte {
	return protowire.AppendVarint(append(b, varintTag(field)), v)
}

func bytesTag(field byte) byte  { return field<<3 | byte(protowire.BytesType) }
func varintTag(field byte) byte { return field<<3 | byte(protowire.VarintType) }

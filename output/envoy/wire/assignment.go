package wire

import (
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/model"
)

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

// Assignment is a load assignment: endpoints in groups. Of a service of 20,000 endpoints the
// generated messages would cost several times as much as this form.
type Assignment struct {
	Name      string
	Groups    []*Group   // in order
	Endpoints []Endpoint // by address and port
}

// Group is endpoints of one locality and priority. Clients demand that a locality occurs
// once in a priority.
type Group struct {
	model.Locality
	Priority uint32 // 0 is used first
	Weight   uint64 // sum of the endpoints' weights

	size int // of its encoded endpoints
	at   int // where the next endpoint is written
}

// Endpoint is one endpoint of an assignment.
type Endpoint struct {
	Address string // an IP address, a name, or the path of a unix socket if Port is 0
	Port    uint16
	Mutual  bool // it is called by mutual TLS
	Weight  uint32
	Group   *Group
	Also    []string // further addresses, of the same port
}

// Any encodes the assignment as a resource.
func (a *Assignment) Any() []byte {
	size := a.measure()
	return a.appendTo(appendAnyHead(make([]byte, 0, anyHeadSize(EndpointURL, size)+size), EndpointURL, size), size)
}

// Message returns the assignment as a message, for a cluster that contains it.
func (a *Assignment) Message() *endpointv3.ClusterLoadAssignment {
	m := &endpointv3.ClusterLoadAssignment{}
	if err := proto.Unmarshal(a.appendTo(nil, a.measure()), m); err != nil {
		panic(invariant(a.Name, err))
	}
	return m
}

// measure returns the size of the encoded assignment, and sets that of each group's
// endpoints.
func (a *Assignment) measure() int {
	for _, g := range a.Groups {
		g.size = 0
	}
	for i := range a.Endpoints {
		e := &a.Endpoints[i]
		e.Group.size += sizeBytes(e.size())
	}
	size := sizeString(a.Name)
	for _, g := range a.Groups {
		size += sizeBytes(g.total())
	}
	return size
}

// appendTo encodes the assignment. Endpoints are ordered by address and not by locality, so
// each is written at the current end of its group.
func (a *Assignment) appendTo(b []byte, size int) []byte {
	b = slices.Grow(b, size)
	b = appendString(b, claName, a.Name)
	for _, g := range a.Groups {
		b = appendHead(b, claEndpoints, g.total())
		b = g.appendLocality(b)
		g.at = len(b)
		b = b[:len(b)+g.size]
		b = appendWrapped(b, localityWeight, g.Weight)
		if g.Priority > 0 {
			b = appendVarint(b, localityPriority, uint64(g.Priority))
		}
	}
	for i := range a.Endpoints {
		e := &a.Endpoints[i]
		e.Group.at = len(e.appendTo(b[:e.Group.at]))
	}
	return b
}

// total is the size of the whole group.
func (g *Group) total() int {
	size := sizeBytes(g.localitySize()) + g.size + sizeWrapped(g.Weight)
	if g.Priority > 0 {
		size += tagSize + protowire.SizeVarint(uint64(g.Priority))
	}
	return size
}

func (g *Group) localitySize() int {
	return sizeString(g.Region) + sizeString(g.Zone) + sizeString(g.SubZone)
}

// appendLocality encodes the locality, even an empty one: gRPC rejects an assignment with a
// group without locality.
func (g *Group) appendLocality(b []byte) []byte {
	b = appendHead(b, localityID, g.localitySize())
	b = appendString(b, localityRegion, g.Region)
	b = appendString(b, localityZone, g.Zone)
	return appendString(b, localitySubZone, g.SubZone)
}

// isPipe reports whether the endpoint is a unix socket.
func (e *Endpoint) isPipe() bool { return e.Port == 0 }

// innermost is the size of the SocketAddress or Pipe.
func (e *Endpoint) innermost() int {
	if e.isPipe() {
		return sizeString(e.Address)
	}
	return e.socketSize(e.Address)
}

func (e *Endpoint) socketSize(address string) int {
	return sizeString(address) + tagSize + protowire.SizeVarint(uint64(e.Port))
}

// endpointSize is the size of the Endpoint.
func (e *Endpoint) endpointSize() int {
	size := sizeBytes(sizeBytes(e.innermost()))
	for _, address := range e.Also {
		size += sizeBytes(sizeBytes(sizeBytes(e.socketSize(address))))
	}
	return size
}

// size is the size of the LbEndpoint.
func (e *Endpoint) size() int {
	size := sizeBytes(e.endpointSize()) + sizeWrapped(uint64(e.Weight))
	if e.Mutual {
		size += len(mutualMetadata)
	}
	return size
}

// appendTo encodes the endpoint as an element of its group.
func (e *Endpoint) appendTo(b []byte) []byte {
	return e.appendMember(appendHead(b, localityEndpoints, e.size()))
}

// appendMember encodes the LbEndpoint itself.
func (e *Endpoint) appendMember(b []byte) []byte {
	innermost := e.innermost()
	b = appendHead(b, lbEndpoint, e.endpointSize())
	b = appendHead(b, endpointAddress, sizeBytes(innermost))
	if e.isPipe() {
		b = appendHead(b, addressPipe, innermost)
		b = appendString(b, pipePath, e.Address)
	} else {
		b = e.appendSocket(b, e.Address)
	}
	for _, address := range e.Also {
		size := sizeBytes(e.socketSize(address))
		b = appendHead(b, endpointAlso, sizeBytes(size))
		b = appendHead(b, alsoAddress, size)
		b = e.appendSocket(b, address)
	}
	if e.Mutual {
		b = append(b, mutualMetadata...)
	}
	return appendWrapped(b, lbWeight, uint64(e.Weight))
}

func (e *Endpoint) appendSocket(b []byte, address string) []byte {
	b = appendHead(b, addressSocket, e.socketSize(address))
	b = appendString(b, socketAddress, address)
	return appendVarint(b, socketPort, uint64(e.Port))
}

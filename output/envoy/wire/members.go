package wire

import (
	"hash/fnv"
	"net/netip"
	"strconv"
)

// memberRoom is the size of a member beside its prefix, for an IPv4 address.
const memberRoom = 150

// Fields of envoy.service.discovery.v3: DeltaDiscoveryResponse and Resource.
const (
	respondedResource = 2
	removedResource   = 6

	resourceVersion = 1
	resourceBody    = 2
	resourceName    = 3
)

// Members encodes members of a collection of endpoints, in the form of a response. A member
// is always an IP address with a port.
type Members struct {
	prefix string
	body   []byte
	name   []byte // of the last member, reused
	value  []byte // likewise
}

// NewMembers returns an empty list with room for n members. Their names begin with the
// prefix.
func NewMembers(prefix string, n int) *Members {
	w := &Members{prefix: prefix}
	if n > 0 {
		w.body = make([]byte, 0, n*(len(prefix)+memberRoom))
	}
	return w
}

// Body returns the encoded members. Without any, it removes the collection of that name:
// Envoy would wait for a first member.
func (w *Members) Body(collection string, all bool) []byte {
	if len(w.body) == 0 && all {
		w.body = appendString(w.body, removedResource, collection)
	}
	return w.body
}

func (w *Members) named(at netip.AddrPort) string {
	w.name = at.Addr().AppendTo(append(w.name[:0], w.prefix...))
	w.name = strconv.AppendUint(append(w.name, '-'), uint64(at.Port()), 10)
	return string(w.name)
}

// Remove removes the member at an address.
func (w *Members) Remove(at netip.AddrPort) {
	w.body = appendString(w.body, removedResource, w.named(at))
}

// Add adds a member. Of the endpoint it needs only the weight, further IP addresses, and
// whether it is called by mutual TLS.
func (w *Members) Add(at netip.AddrPort, weight uint32, also []netip.Addr, mutual bool) {
	e := Endpoint{Address: at.Addr().String(), Port: at.Port(), Weight: max(weight, 1), Mutual: mutual}
	for _, ip := range also {
		if ip != at.Addr() {
			e.Also = append(e.Also, ip.String())
		}
	}
	w.value = e.appendMember(appendAnyHead(w.value[:0], MemberURL, e.size()))
	sum := fnv.New32a()
	_, _ = sum.Write(w.value) // never fails
	version := strconv.FormatUint(uint64(sum.Sum32()), 36)
	name := w.named(at)
	w.body = appendHead(w.body, respondedResource, sizeString(version)+sizeString(name)+sizeBytes(len(w.value)))
	w.body = appendString(w.body, resourceVersion, version)
	w.body = appendString(w.body, resourceName, name)
	w.body = append(appendHead(w.body, resourceBody, len(w.value)), w.value...)
}

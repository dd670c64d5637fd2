package sourcetest

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// Services is the content of a registry, by host.
type Services map[string]Service

// Service is a service of a registry.
type Service struct {
	// Endpoints are its HTTP endpoints, in order: at least one.
	Endpoints []netip.AddrPort
	// Bad says that the registry has the service, and that no new state of it can be
	// stored: its text is broken, say, or it alone cannot be read.
	Bad bool
}

func (s Service) same(o Service) bool {
	return s.Bad == o.Bad && slices.Equal(s.Endpoints, o.Endpoints)
}

// Sorted yields the services by host.
func (s Services) Sorted() iter.Seq2[string, Service] {
	return func(yield func(string, Service) bool) {
		for _, host := range slices.Sorted(maps.Keys(s)) {
			if !yield(host, s[host]) {
				return
			}
		}
	}
}

// String returns hosts with their numbers of endpoints, for people.
func (s Services) String() string {
	var all []string
	for host, service := range s.Sorted() {
		text := fmt.Sprintf("%s:%d", strings.TrimSuffix(host, ".example"), len(service.Endpoints))
		if service.Bad {
			text += " (bad)"
		}
		all = append(all, text)
	}
	return "[" + strings.Join(all, " ") + "]"
}

func (s Services) anyBad() bool {
	for _, service := range s {
		if service.Bad {
			return true
		}
	}
	return false
}

// without returns the services without some endpoints of each; a service without
// endpoints is gone.
func (s Services) without(gone func(host string, i int) bool) Services {
	rest := Services{}
	for host, service := range s {
		var kept []netip.AddrPort
		for i, e := range service.Endpoints {
			if !gone(host, i) {
				kept = append(kept, e)
			}
		}
		if len(kept) > 0 {
			rest[host] = Service{Endpoints: kept, Bad: service.Bad}
		}
	}
	return rest
}

var mirrored = []string{"a.example", "b.example", "c.example", "d.example"}

// drawListed draws the content of a registry.
func drawListed(t *rapid.T) Services {
	s := Services{}
	for _, host := range rapid.SliceOfNDistinct(rapid.SampledFrom(mirrored), 0, len(mirrored), rapid.ID).Draw(t, "services") {
		s[host] = drawService(t, host)
	}
	return s
}

func drawService(t *rapid.T, host string) Service {
	from := rapid.IntRange(0, 3).Draw(t, "first endpoint")
	n := rapid.SampledFrom([]int{1, 2, 5, 12, 30}).Draw(t, "endpoints")
	s := Service{Bad: rapid.IntRange(0, 7).Draw(t, "bad") == 0}
	for i := range n {
		s.Endpoints = append(s.Endpoints, endpointAt(host, from+i))
	}
	return s
}

func endpointAt(host string, i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(slices.Index(mirrored, host)), byte(i + 1)}), 8080)
}

// redraw draws the next content of a registry: one changed service, or everything.
func (s Services) redraw(t *rapid.T) Services {
	if rapid.IntRange(0, 3).Draw(t, "everything") == 0 {
		return drawListed(t)
	}
	next, host := maps.Clone(s), rapid.SampledFrom(mirrored).Draw(t, "service")
	if _, has := s[host]; has && rapid.IntRange(0, 2).Draw(t, "goes") == 0 {
		delete(next, host)
	} else {
		next[host] = drawService(t, host)
	}
	return next
}

// served are the stored services: endpoints by host.
type served map[string]map[netip.AddrPort]bool

// servedIn reads the services of records.
func servedIn(records map[model.Ref]model.Record) served {
	s := served{}
	for _, rec := range records {
		if host := hostOf(rec, records); host != "" {
			if s[host] == nil {
				s[host] = map[netip.AddrPort]bool{}
			}
			for e := range socketsOf(rec) {
				s[host][e] = true
			}
		}
	}
	return s
}

// hostOf returns the host of a service, or of an endpoint's service.
func hostOf(rec model.Record, records map[model.Ref]model.Record) string {
	if rec.Kind == model.KindEndpoint {
		rec = records[rec.Owner]
	}
	spec, _ := rec.Spec.(model.Service)
	for host := range spec.Hosts.All() {
		return host
	}
	return ""
}

// socketsOf yields the sockets of an endpoint.
func socketsOf(rec model.Record) iter.Seq[netip.AddrPort] {
	return func(yield func(netip.AddrPort) bool) {
		spec, _ := rec.Spec.(model.Endpoint)
		address, err := netip.ParseAddr(spec.Address)
		if err != nil {
			return
		}
		for _, port := range spec.Ports.All() {
			if !yield(netip.AddrPortFrom(address, uint16(port))) {
				return
			}
		}
	}
}

// difference returns how the stored state of a service differs from the registry;
// empty if it does not.
func (s served) difference(host string, want Service) string {
	has, stored := s[host]
	if !stored {
		return host + " is not stored"
	}
	for _, e := range want.Endpoints {
		if !has[e] {
			return fmt.Sprintf("%s lacks %s", host, e)
		}
	}
	for e := range has {
		if !slices.Contains(want.Endpoints, e) {
			return fmt.Sprintf("%s has %s, which the registry has not", host, e)
		}
	}
	return ""
}

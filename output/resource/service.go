package resource

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// anySize has a service divided by the ports that endpoints serve, and not by size.
var anySize = compose.Layout{}

// entry is one ServiceEntry of a service.
type entry struct {
	service *catalog.Service
	// part is the one of several that it is. It is nil for a service that has one,
	// which is made when it is needed: to keep all of them would take as much again as
	// the catalog does.
	part *compose.DraftPart
	// first says that it is the part which has every port.
	first     bool
	synthetic bool
}

// partsOf returns the ServiceEntries of a service by the ends of their names: that of
// the first part is empty.
func partsOf(s *catalog.Service) map[string]entry {
	if compose.Invalid(s) != "" {
		return nil
	}
	if len(s.Ports) < 2 { // every endpoint serves all of them
		return map[string]entry{"": {service: s, first: true}}
	}
	draft := compose.DraftService(s, anySize)
	parts := make(map[string]entry, len(draft.Parts))
	for i := range draft.Parts {
		p := &draft.Parts[i]
		e := entry{service: s, part: p, first: p.Name == compose.NameOf(s.Key.Host)}
		if len(draft.Parts) == 1 {
			e.part = nil
		}
		parts[strings.TrimPrefix(p.Name, compose.NameOf(s.Key.Host))] = e
	}
	return parts
}

// spec makes the specification. In this layout all parts of a service are
// ServiceEntries.
func (e entry) spec() (*networking.ServiceEntry, istio.Paths) {
	part := e.part
	if part == nil {
		part = &compose.DraftService(e.service, anySize).Parts[0]
	}
	spec, _ := part.Spec().(*networking.ServiceEntry)
	return spec, part.Paths()
}

// make implements [maker].
func (e entry) make() made {
	name, meta := e.service.Key.String(), e.service.Meta
	spec, paths := e.spec()
	m := madeOf(name, meta, spec, paths)
	if !e.synthetic {
		return m
	}
	annotations := meta.Annotations.Map()
	if annotations == nil {
		annotations = map[string]string{}
	}
	m.paths.NotReady = e.annotate(annotations, spec)
	m.meta.Annotations = model.MapOf(annotations)
	return m
}

// annotate says by which parts a synthetic ServiceEntry differs from the one before,
// and which of its endpoints are not ready, and returns the paths of these. It uses up
// the specification.
func (e entry) annotate(annotations map[string]string, spec *networking.ServiceEntry) []model.Path {
	for _, own := range [...]string{mcp.ServiceVersion, mcp.EndpointsVersion, mcp.NotReadyEndpoints} {
		delete(annotations, own)
	}
	name := e.service.Key.String()
	notReady := ""
	var paths []model.Path
	if e.first {
		var sockets []string
		sockets, paths = notReadyOf(e.service)
		notReady = strings.Join(sockets, ",")
	}
	endpoints := &networking.ServiceEntry{Endpoints: spec.Endpoints}
	annotations[mcp.EndpointsVersion] = shortHash(marshal(name, endpoints), []byte(notReady))
	spec.Endpoints = nil
	parts := [][]byte{marshal(name, spec)}
	for _, labels := range [...]model.Labels{e.service.Meta.Labels, e.service.Meta.Annotations} {
		for key, value := range labels.All() {
			if !isVersion(key) {
				parts = append(parts, []byte(key), []byte(value))
			}
		}
		parts = append(parts, nil)
	}
	annotations[mcp.ServiceVersion] = shortHash(parts...)
	if notReady != "" {
		annotations[mcp.NotReadyEndpoints] = notReady
	}
	return paths
}

func isVersion(annotation string) bool {
	return annotation == mcp.ServiceVersion || annotation == mcp.EndpointsVersion || annotation == mcp.NotReadyEndpoints
}

func shortHash(parts ...[]byte) string {
	v := world.VersionOf(parts...)
	return hex.EncodeToString(v[:8])
}

// notReadyOf lists the endpoints that are there and get no traffic, each with its
// path: the shorter one, if two ports of the service are there. A reader takes an address for all networks,
// so one that serves in another network is not listed.
func notReadyOf(s *catalog.Service) (list []string, paths []model.Path) {
	by := map[string]model.Path{}
	for _, port := range compose.WrittenPorts(s) {
		endpoints := s.Endpoints(port.Number)
		for e := range endpoints.All() {
			if e.Health != model.Healthy && e.Port != 0 && !serves(endpoints.AtPort(e.Address, e.Port)) {
				socket := net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10))
				if path, known := by[socket]; !known || e.Path.Len() < path.Len() {
					by[socket] = e.Path
				}
			}
		}
	}
	list = slices.Sorted(maps.Keys(by))
	for _, socket := range list {
		paths = append(paths, by[socket])
	}
	return list, paths
}

func serves(some []catalog.Endpoint) bool {
	return slices.ContainsFunc(some, func(e catalog.Endpoint) bool { return e.Health == model.Healthy })
}

// NotOffered says why a service is no resource, or how many of its healthy endpoints and ports
// are in none and why; empty if all of it is.
func NotOffered(s *catalog.Service) string {
	if reason := compose.Invalid(s); reason != "" {
		return reason
	}
	var parts []string
	for _, left := range compose.Omitted(s) {
		endpoints := "endpoints"
		if left.Count == 1 {
			endpoints = "endpoint"
		}
		parts = append(parts, fmt.Sprintf("%d %s: %s", left.Count, endpoints, left.Reason))
	}
	if n := len(s.Ports) - len(compose.WrittenPorts(s)); n > 0 {
		parts = append(parts, compose.LeftOut{Reason: compose.OtherResolution, Count: n}.String())
	}
	return strings.Join(parts, "; ")
}

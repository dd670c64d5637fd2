package records

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// mostPorts is how many ports a service may have in Istio's schema.
const mostPorts = 256

// Port is a port of a service that instances listen on, or listened on not long
// ago.
type Port struct {
	number   uint32
	protocol string
	idle     time.Time // since when no instance has it; zero if one does
}

func (p Port) name() string {
	return strings.ToLower(p.protocol) + "-" + strconv.FormatUint(uint64(p.number), 10)
}

// idleAnnotation lists the ports of a service that no instance has, and since when.
// So any later process drops them in time.
const idleAnnotation = "isthmus.io/idle-ports"

// choosePorts returns the ports of a service, by number: the ports that instances
// listen on, and for the time of grace known ports that no instance has now. If no
// instance listens anywhere, the known ports stay for as long as that lasts.
//
// If instances disagree about the protocol of a port, the majority counts. At a tie,
// the protocol known before counts, or else the first by name.
func choosePorts(instances []announced, known []Port, now time.Time, grace time.Duration) []Port {
	used := usage(instances)
	before := make(map[uint32]Port, len(known))
	for _, p := range known {
		before[p.number] = p
	}
	ports := make([]Port, 0, len(used)+len(known))
	for number, protocols := range used {
		ports = append(ports, Port{number: number, protocol: majority(protocols, before[number].protocol)})
	}
	for _, p := range known {
		if len(used[p.number]) > 0 {
			continue
		}
		if p.idle.IsZero() || p.idle.After(now) {
			p.idle = now
		}
		if len(used) == 0 || now.Sub(p.idle) < grace {
			ports = append(ports, p)
		}
	}
	return fewEnough(ports, used)
}

// usage counts the instances that have each protocol on each port.
func usage(instances []announced) map[uint32]map[string]int {
	used := map[uint32]map[string]int{}
	for _, a := range instances {
		type listening struct {
			port     uint32
			protocol string
		}
		once := map[listening]bool{}
		for _, l := range a.listeners {
			if on := (listening{l.port, l.protocol}); !once[on] {
				once[on] = true
				if used[l.port] == nil {
					used[l.port] = map[string]int{}
				}
				used[l.port][l.protocol]++
			}
		}
	}
	return used
}

func majority(protocols map[string]int, before string) string {
	best := ""
	for _, protocol := range slices.Sorted(maps.Keys(protocols)) {
		n, most := protocols[protocol], protocols[best]
		if n > most || n == most && protocol == before {
			best = protocol
		}
	}
	return best
}

// fewEnough drops ports beyond the limit: ports that no instance has before others,
// ports of few instances before ports of many.
func fewEnough(ports []Port, used map[uint32]map[string]int) []Port {
	byNumber := func(a, b Port) int { return cmp.Compare(a.number, b.number) }
	slices.SortFunc(ports, byNumber)
	if len(ports) <= mostPorts {
		return ports
	}
	slices.SortStableFunc(ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(used[b.number][b.protocol], used[a.number][a.protocol]), b.idle.Compare(a.idle))
	})
	ports = ports[:mostPorts]
	slices.SortFunc(ports, byNumber)
	return ports
}

// servicePorts returns the ports for the service's record.
func servicePorts(known []Port) model.List[model.Port] {
	ports := make([]model.Port, len(known))
	for i, p := range known {
		ports[i] = model.Port{Number: p.number, Name: p.name(), Protocol: p.protocol}
	}
	return model.ListOf(ports...)
}

// idlePorts returns the annotation that lists the idle ports.
func idlePorts(known []Port) model.Labels {
	var idle []string
	for _, p := range known {
		if !p.idle.IsZero() {
			idle = append(idle, fmt.Sprintf("%d=%s", p.number, p.idle.UTC().Format(time.RFC3339)))
		}
	}
	if len(idle) == 0 {
		return model.Labels{}
	}
	return model.MapOf(map[string]string{idleAnnotation: strings.Join(idle, ",")})
}

// KnownPorts reads the ports back from a stored service.
func KnownPorts(spec model.Service) []Port {
	idle := map[uint32]time.Time{}
	text, _ := spec.Annotations.Get(idleAnnotation)
	for item := range strings.SplitSeq(text, ",") {
		number, since, _ := strings.Cut(item, "=")
		n, err := strconv.ParseUint(number, 10, 16)
		at, timeErr := time.Parse(time.RFC3339, since)
		if err == nil && timeErr == nil {
			idle[uint32(n)] = at
		}
	}
	ports := make([]Port, 0, spec.Ports.Len())
	for port := range spec.Ports.All() {
		ports = append(ports, Port{port.Number, port.Protocol, idle[port.Number]})
	}
	return ports
}

// PortsDue returns when the first of the idle ports is to be dropped; zero if none is.
func (r Rules) PortsDue(known []Port) time.Time {
	var due time.Time
	used := slices.ContainsFunc(known, func(p Port) bool { return p.idle.IsZero() })
	for _, p := range known {
		if at := p.idle.Add(r.portGrace); used && !p.idle.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

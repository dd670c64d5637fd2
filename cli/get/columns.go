package get

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/model"
)

// cell is a value of a row, under its heading.
type cell struct{ heading, value string }

// cells returns the row of a record of a kind. Its headings depend on the kind alone.
func cells(kind string, r *resourcev1alpha1.Record) []cell {
	list := []cell{{"namespace", r.GetRef().GetNamespace()}}
	if !isMerged(kind) {
		list = append(list, cell{"name", r.GetRef().GetName()})
	}
	list = append(list, content(kind, r)...)
	if !isMerged(kind) {
		list = append(list, cell{"source", r.GetRef().GetSource()})
	}
	return append(list, cell{"stale", staleOf(r)})
}

// content returns the cells that a kind has beside names and sources.
func content(kind string, r *resourcev1alpha1.Record) []cell {
	switch model.Kind(kind) {
	case model.KindService:
		s := r.GetService()
		return []cell{{"hosts", strings.Join(s.GetHosts(), ",")}, {"ports", portsOf(s)}, {"resolution", s.GetResolution()}}
	case model.KindEndpoint:
		return endpoint(r.GetEndpoint())
	case model.KindWorkload:
		return endpoint(r.GetWorkload().GetEndpoint())
	case model.KindScope:
		s := r.GetScope()
		return []cell{{"hosts", strings.Join(s.GetHosts(), ",")}, {"workloads", labels(s.GetWorkloadSelector())}}
	case model.KindConsumption:
		return consumption(r.GetConsumption())
	case model.KindSplit:
		s := r.GetSplit()
		return []cell{{"host", s.GetHost()}, {"backends", backends(s.GetBackends())}, {"no effect", s.GetNoEffect()}}
	case model.KindSource:
		mark := r.GetSourceMark()
		return []cell{{"held until", timeOf(mark.GetHoldUntil())}, {"stale since", timeOf(mark.GetStaleSince())}, revision(r)}
	case model.KindHold:
		h := r.GetHold()
		return []cell{{"lost", strconv.FormatUint(uint64(h.GetLost()), 10)}, {"reason", h.GetReason()}, revision(r)}
	case model.KindMergedService:
		s := r.GetMergedService()
		return []cell{{"host", r.GetRef().GetName()}, {"ports", portsOf(s.GetService())}, {"sources", strings.Join(s.GetSources(), ",")}}
	case model.KindMergedEndpoint:
		return mergedEndpoint(r)
	default:
		o := r.GetOpaque()
		return []cell{{"bytes", strconv.Itoa(len(o.GetContent()))}, {"place", r.GetPlace()}, revision(r)}
	}
}

func revision(r *resourcev1alpha1.Record) cell {
	return cell{"revision", strconv.FormatUint(r.GetRevision(), 10)}
}

func endpoint(e *resourcev1alpha1.Endpoint) []cell {
	addresses := append([]string{e.GetAddress()}, e.GetAdditionalAddresses()...)
	ports := labelled(e.GetPorts(), ":")
	return []cell{{"address", strings.Join(addresses, ",")}, {"ports", ports}, {"health", healthOf(e)}}
}

func mergedEndpoint(r *resourcev1alpha1.Record) []cell {
	m := r.GetMergedEndpoint()
	address := m.GetEndpoint().GetAddress()
	if m.GetPort() != 0 { // not a unix socket
		address = net.JoinHostPort(address, strconv.FormatUint(uint64(m.GetPort()), 10))
	}
	return []cell{
		{"host", r.GetOwner().GetName()},
		{"port", strconv.FormatUint(uint64(m.GetServicePort()), 10)},
		{"address", address},
		{"weight", strconv.FormatUint(uint64(cmp.Or(m.GetEndpoint().GetWeight(), 1)), 10)},
		{"health", healthOf(m.GetEndpoint())},
		{"source", m.GetSource()},
	}
}

func healthOf(e *resourcev1alpha1.Endpoint) string { return cmp.Or(e.GetHealth(), "HEALTHY") }

func portsOf(s *resourcev1alpha1.Service) string {
	var list []string
	for _, p := range s.GetPorts() {
		list = append(list, fmt.Sprintf("%d/%s", p.GetNumber(), p.GetProtocol()))
	}
	return strings.Join(list, ",")
}

func consumption(c *resourcev1alpha1.Consumption) []cell {
	var providers []string
	for _, p := range c.GetProviders() {
		providers = append(providers, p.GetNamespace()+"/"+p.GetHost())
	}
	return []cell{{"consumer", c.GetConsumer().GetHost()}, {"providers", strings.Join(providers, ",")}}
}

func backends(list []*resourcev1alpha1.Backend) string {
	var texts []string
	for _, b := range list {
		of := strings.Trim(strings.Join([]string{b.GetService().GetHost(), b.GetSource(), labels(b.GetLabels())}, " "), " ")
		texts = append(texts, fmt.Sprintf("%s:%d", cmp.Or(of, "all"), b.GetWeight()))
	}
	return strings.Join(texts, ",")
}

func labels(m map[string]string) string { return labelled(m, "=") }

// labelled returns the entries of a map in the order of their keys.
func labelled[V any](m map[string]V, between string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprint(k, between, m[k]))
	}
	return strings.Join(list, ",")
}

// staleOf returns why a record is not its newest version, and for how long.
func staleOf(r *resourcev1alpha1.Record) string {
	if r.GetStale() == "" || r.GetStaleSince() == nil {
		return r.GetStale()
	}
	return "since " + r.GetStaleSince().AsTime().Local().Format(time.DateTime) + ": " + r.GetStale()
}

// headings returns the headings of a kind.
func headings(kind string) (list []string) {
	for _, c := range cells(kind, nil) {
		list = append(list, c.heading)
	}
	return list
}

// values returns the values of a record's row.
func values(kind string, r *resourcev1alpha1.Record) (list []string) {
	for _, c := range cells(kind, r) {
		list = append(list, term.OrDash(c.value))
	}
	return list
}

func timeOf(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return at.AsTime().Local().Format(time.DateTime)
}

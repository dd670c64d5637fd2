package istio_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// Every case is some files and, as the last one, what is read from them.
func TestReading(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, files *txtar.Archive) *txtar.Archive {
		t.Helper()
		const outcome = "listing"
		var all model.Listing
		for _, f := range files.Files {
			if f.Name == outcome {
				continue
			}
			read := gather(f.Name, f.Data)
			all.Objects, all.Rejected = append(all.Objects, read.Objects...), append(all.Rejected, read.Rejected...)
		}
		return golden.With(files, outcome, listing.Dump(all))
	})
}

// gather lists what a file says.
func gather(place string, text []byte) model.Listing {
	l := model.Listing{Ignored: map[string]int{}}
	for r := range istio.Read(text) {
		if r.Ignored {
			l.Ignored[r.Kind]++
		}
		if r.Valid() {
			l.Objects = append(l.Objects, r.Listed(place))
		}
		if faults := r.Faults(); len(faults) > 0 {
			l.Rejected = append(l.Rejected, r.Rejection(place, place+":"+strconv.Itoa(faults[0].Line)))
		}
	}
	return l
}

// manifest writes an object down as JSON.
func manifest(object model.Object) []byte {
	doc := map[string]any{"apiVersion": "networking.istio.io/v1"}
	switch spec := object.Record.Spec.(type) {
	case model.Service:
		doc["kind"] = "ServiceEntry"
		doc["metadata"] = metadataOf(object.Record.Ref, spec.Meta)
		doc["spec"] = serviceSpec(spec, object.Owned)
	case model.Workload:
		doc["kind"] = "WorkloadEntry"
		doc["metadata"] = metadataOf(object.Record.Ref, spec.Meta)
		doc["spec"] = endpointSpec(spec.Endpoint)
		if spec.Endpoint.Health == model.Unhealthy {
			doc["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Healthy", "status": "False"}}}
		}
	case model.Scope:
		doc["kind"] = "Sidecar"
		doc["metadata"] = metadataOf(object.Record.Ref, spec.Meta)
		doc["spec"] = json.RawMessage(spec.Content)
	case model.Split:
		doc["apiVersion"], doc["kind"] = "split.smi-spec.io/v1alpha1", "TrafficSplit"
		doc["metadata"] = metadataOf(object.Record.Ref, spec.Meta)
		doc["spec"] = splitSpec(doc, spec)
	case model.Opaque:
		return []byte(spec.Content)
	default:
		panic(fmt.Sprintf("specification %T", spec))
	}
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return data
}

// splitSpec writes the weights that are not whole as thousandths. A split without effect was
// written with matches.
func splitSpec(doc map[string]any, s model.Split) map[string]any {
	if s.NoEffect != "" {
		doc["apiVersion"] = "split.smi-spec.io/v1alpha4"
		return map[string]any{
			"service": s.Host, "backends": []any{map[string]any{"service": s.Host, "weight": 1}},
			"matches": []any{map[string]any{"kind": "HTTPRouteGroup", "name": "firefox"}},
		}
	}
	suffix := ""
	for _, b := range s.Backends {
		if b.Weight%1000 != 0 {
			suffix = "m"
		}
	}
	var backends []any
	for _, b := range s.Backends {
		backends = append(backends, map[string]any{"service": cmp.Or(b.Service.Host, s.Host), "weight": fmt.Sprint(b.Weight) + suffix})
	}
	return map[string]any{"service": s.Host, "backends": backends}
}

func metadataOf(ref model.Ref, m model.Meta) map[string]any {
	out := map[string]any{
		"name": ref.Name, "namespace": ref.Namespace,
		"labels": m.Labels.Map(), "annotations": m.Annotations.Map(),
	}
	if !m.Created.IsZero() {
		out["creationTimestamp"] = m.Created
	}
	return out
}

func serviceSpec(s model.Service, owned []model.Record) map[string]any {
	out := map[string]any{"hosts": s.Hosts.Slice(), "location": s.Location, "resolution": s.Resolution}
	for name, list := range map[string]model.List[string]{"addresses": s.Addresses, "exportTo": s.ExportTo, "subjectAltNames": s.SubjectAltNames} {
		if list.Len() > 0 {
			out[name] = list.Slice()
		}
	}
	if s.Ports.Len() > 0 {
		out["ports"] = s.Ports.Slice()
	}
	if s.WorkloadSelector.Len() > 0 {
		out["workloadSelector"] = map[string]any{"labels": s.WorkloadSelector.Map()}
	}
	var endpoints []any
	for _, r := range owned {
		endpoints = append(endpoints, endpointSpec(r.Spec.(model.Endpoint)))
	}
	if endpoints != nil {
		out["endpoints"] = endpoints
	}
	return out
}

func endpointSpec(e model.Endpoint) map[string]any {
	out := map[string]any{
		"address": e.Address, "labels": e.Labels.Map(), "network": e.Network, "weight": e.Weight,
		"locality":       strings.TrimRight(strings.Join([]string{e.Locality.Region, e.Locality.Zone, e.Locality.SubZone}, "/"), "/"),
		"serviceAccount": e.ServiceAccount,
	}
	if e.Ports.Len() > 0 {
		out["ports"] = e.Ports.Map()
	}
	return out
}

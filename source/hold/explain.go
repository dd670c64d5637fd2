package hold

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// An explanation is the part of a listing's difference that is no loss: the endpoints and hosts of a
// missing record are listed under another name.
//
// A missing endpoint is explained by a new one of the same listing with the same network, address
// and ports, at the same host and namespace, or at the same host in another namespace where at least
// the same namespaces see it. It is explained for all hosts of its service, or not at all. A missing
// service is explained if all of its missing endpoints are, or if it has none, by new services with
// its hosts. A record that was listed before explains nothing: a tenant that copies the hosts and
// addresses of others must not switch off their hold.
type explanation struct {
	explained []model.Record              // missing records, held or not
	by        map[model.Ref]bool          // new records, which are no gain
	services  map[model.Ref]model.Service // of the listing, and the missing ones
	at        map[spot][]offer
}

// spot is a socket, or as the zero number a service as such, at a host or among the workloads of
// a service.
type spot struct {
	host   string
	of     model.Ref // the selecting service, for workloads alone
	socket uint64
}

// offer is a new record at a spot.
type offer struct {
	model.Ref
	exportTo model.List[string]
}

// explain returns the explanation of missing records, and the difference without these records.
func explain(k Known, r *reading.Reading, d reading.Difference) (explanation, reading.Difference) {
	e := explanation{by: map[model.Ref]bool{}}
	if len(d.Missing) == 0 || !slices.Contains(d.Survived, false) {
		return e, d
	}
	e.services, e.at = map[model.Ref]model.Service{}, map[spot][]offer{}
	for _, list := range [][]model.Record{r.Records, d.Missing} {
		for _, rec := range list {
			if spec, is := rec.Spec.(model.Service); is {
				e.services[rec.Ref] = spec
			}
		}
	}
	for i, rec := range r.Records {
		if !d.Survived[i] {
			for _, s := range e.spots(k, rec) {
				e.at[s] = append(e.at[s], offer{rec.Ref, e.services[index.Head(rec)].ExportTo})
			}
		}
	}
	own, lost := map[model.Ref]bool{}, map[model.Ref]bool{} // by service: some of its own endpoints are missing; some that it serves are lost
	is := make([]bool, len(d.Missing))
	for i, rec := range d.Missing {
		if index.IsEndpoint(rec.Kind) {
			is[i], own[rec.Owner] = e.explains(k, rec), true
			for _, service := range k.Index.ServicesOf(rec) {
				lost[service] = lost[service] || !is[i]
			}
		}
	}
	missing := d.Missing
	d.Missing = nil
	for i, rec := range missing {
		if rec.Kind == model.KindService {
			is[i] = !lost[rec.Ref] && (own[rec.Ref] || e.explains(k, rec))
		}
		if is[i] {
			e.explained = append(e.explained, rec)
		} else {
			d.Missing = append(d.Missing, rec)
		}
	}
	return e, d
}

// count counts the renamed endpoints among the ends, as if each had always had its new name. It
// returns how many each service gives to others.
func (e *explanation) count(k Known, listed []model.Record, by ends) (moved numbers) {
	moved = numbers{}
	for _, rec := range e.explained {
		k.end(by, rec, false)
		moved.add(k, rec)
	}
	for _, rec := range listed {
		if e.by[rec.Ref] {
			for _, service := range k.Index.ServicesOf(rec) {
				by.add(service, end{}, -1)
				moved[service]--
			}
		}
	}
	return moved
}

// explains reports whether new records are everywhere where a missing one was. Without an address
// it is not known which machine an endpoint is, and each new one explains one.
func (e *explanation) explains(k Known, missing model.Record) bool {
	spots, exported := e.spots(k, missing), e.services[index.Head(missing)].ExportTo
	suits := func(o offer) bool { return seenByAll(o, missing.Namespace, exported) }
	for _, s := range spots {
		if !slices.ContainsFunc(e.at[s], suits) {
			return false
		}
	}
	for _, s := range spots {
		if index.IsEndpoint(missing.Kind) && addressOf(missing) == "" {
			at := slices.IndexFunc(e.at[s], suits)
			e.by[e.at[s][at].Ref] = true
			e.at[s] = slices.Delete(e.at[s], at, at+1)
			continue
		}
		for _, o := range e.at[s] {
			e.by[o.Ref] = e.by[o.Ref] || suits(o)
		}
	}
	return len(spots) > 0
}

// seenByAll reports whether a new record is in a namespace, or seen by all namespaces that a
// service of it was exported to.
func seenByAll(o offer, namespace string, exported model.List[string]) bool {
	all := func(to model.List[string]) bool { return to.Len() == 0 || to.Contains("*") }
	if o.Namespace == namespace || all(o.exportTo) {
		return true
	}
	for to := range exported.All() {
		if to == "." {
			to = namespace
		}
		if to != "~" && !o.exportTo.Contains(to) && (to != o.Namespace || !o.exportTo.Contains(".")) {
			return false
		}
	}
	return !all(exported)
}

// spots returns where a record is, each once, by the services of the listing and the missing ones.
func (e *explanation) spots(k Known, rec model.Record) (spots []spot) {
	switch spec := rec.Spec.(type) {
	case model.Service:
		for host := range namesOf(spec) {
			spots = append(spots, spot{host: host})
		}
	case model.Endpoint:
		service := e.services[rec.Owner]
		for socket := range index.SocketsOf(service, spec) {
			for host := range namesOf(service) {
				spots = append(spots, spot{host: host, socket: socket})
			}
		}
	case model.Workload:
		own := spec.Endpoint
		sockets := map[uint64]bool{source.Socket(own.Address, own.Network, 0): true}
		for _, number := range own.Ports.All() {
			sockets[source.Socket(own.Address, own.Network, number)] = true
		}
		for _, service := range k.Index.ServicesOf(rec) {
			for socket := range sockets {
				spots = append(spots, spot{of: service, socket: socket})
			}
		}
	}
	return spots
}

// namesOf returns the hosts of a service. Several spellings are one.
func namesOf(s model.Service) map[string]bool {
	all := map[string]bool{}
	for host := range s.Hosts.All() {
		all[model.Name(host)] = true
	}
	return all
}

func addressOf(rec model.Record) string {
	if spec, is := rec.Spec.(model.Workload); is {
		return spec.Endpoint.Address
	}
	spec, _ := rec.Spec.(model.Endpoint)
	return spec.Address
}

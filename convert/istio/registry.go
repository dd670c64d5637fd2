package istio

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// A ServiceEntry that a person wrote is validated as a whole, as in a cluster with Istio. A
// ServiceEntry that a registry made of its instances is validated piece by piece. No person
// can correct such an object, and one bad instance would freeze all others of its service.
// [FromResource] reads objects made by registries, and all other functions read objects
// written by people.

// piece is a part of a ServiceEntry that is left out by itself if it is bad: an endpoint, a
// label of an endpoint, or the number of a port.
type piece struct {
	list    string // the field of the ServiceEntry
	index   int
	isLabel bool
	label   string // its key
}

const (
	pieceEndpoint = "endpoints"
	piecePort     = "ports"
)

// piece returns the piece that a field belongs to, if it belongs to one.
func (t *trail) piece() (is piece, ok bool) {
	var steps []*trail
	for ; t != nil; t = t.up {
		steps = append(steps, t)
	}
	slices.Reverse(steps)
	if len(steps) < 3 || steps[0].name != "spec" || steps[2].index < 0 {
		return piece{}, false
	}
	is = piece{list: steps[1].name, index: steps[2].index}
	switch is.list {
	case pieceEndpoint:
		if len(steps) == 5 && steps[3].name == "labels" {
			is.isLabel, is.label = true, steps[4].name
		}
		return is, true
	case piecePort:
		return is, len(steps) == 4 && steps[3].name == "number"
	}
	return piece{}, false
}

// pieces are the bad pieces of an object, with the first problem of each.
type pieces map[piece]Problem

// texts returns the problems to be written. Bad pieces beyond the bound have none.
func (ps pieces) texts() (list []Problem) {
	for _, problem := range ps {
		if problem.Reason != "" {
			list = append(list, problem)
		}
	}
	slices.SortFunc(list, compareProblems)
	return list
}

// fromRegistry reads an object that a registry made. The bad pieces of a ServiceEntry are
// removed if the rest is usable; the rest is validated again.
func fromRegistry(o Object) Reading {
	root := nodeOf(o)
	entry, is := o.Spec.(*networking.ServiceEntry)
	if !is {
		return readWith(&root, Options{}, problems{carried: true})
	}
	bad := pieces{}
	r := readWith(&root, Options{}, problems{carried: true, pieces: bad})
	if len(bad) == 0 || r.Ignored {
		return r
	}
	rejected := bad.texts()
	if r.Valid() {
		if left, usable := repair(entry, bad); usable {
			root = nodeOf(o)
			if again := readWith(&root, Options{}, problems{carried: true}); again.Valid() {
				again.Rejected = left.texts()
				return again
			}
		}
	}
	r.Spec, r.Owned = nil, nil
	r.Problems = append(r.Problems, rejected...)
	slices.SortStableFunc(r.Problems, compareProblems)
	r.Problems = r.Problems[:min(len(r.Problems), yamlpos.MaxProblems)]
	return r
}

// repair removes the bad pieces of an entry, and returns the ones that it now lacks. The
// entry is not usable if that would change the meaning of the rest:
//
//   - A port without a number gets the number that all of its endpoints agree on.
//     It is removed if there is no endpoint. Otherwise the endpoints' port is unknown.
//   - With DNS, an entry without endpoints means its own host.
func repair(entry *networking.ServiceEntry, bad pieces) (left pieces, usable bool) {
	left, had := maps.Clone(bad), len(entry.GetEndpoints()) > 0
	var endpoints []*networking.WorkloadEntry
	for i, e := range entry.GetEndpoints() {
		if _, is := bad[piece{list: pieceEndpoint, index: i}]; !is {
			endpoints = append(endpoints, e)
		}
	}
	for is := range bad {
		if is.isLabel {
			delete(entry.GetEndpoints()[is.index].GetLabels(), is.label)
		}
	}
	var ports []*networking.ServicePort
	for i, port := range entry.GetPorts() {
		is := piece{list: piecePort, index: i}
		if _, noNumber := bad[is]; noNumber {
			number, agreed := agreedPort(endpoints, port.GetName())
			switch {
			case agreed && port.GetNumber() == 0:
				port.Number = number
				delete(left, is)
			case len(endpoints) > 0:
				return nil, false
			default:
				continue
			}
		}
		ports = append(ports, port)
	}
	entry.Endpoints, entry.Ports = endpoints, ports
	return left, len(endpoints) > 0 || !had || entry.GetResolution() == networking.ServiceEntry_STATIC
}

// agreedPort returns the number at which all endpoints serve the port of a name. Nacos 3
// gives the number only there.
func agreedPort(endpoints []*networking.WorkloadEntry, name string) (number uint32, agreed bool) {
	for i, e := range endpoints {
		own, says := e.GetPorts()[name]
		if !says || i > 0 && own != number {
			return 0, false
		}
		number = own
	}
	return number, len(endpoints) > 0
}

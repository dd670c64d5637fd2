package istio

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// moves are the endpoints that move from one object of a service to another because their
// served ports have changed. For every object it has the addresses that the object loses,
// and the objects that take each of them in.
type moves map[Ref]map[uint32][]Ref

// movesOf finds the endpoints that move between objects.
func movesOf(actions []Action) moves {
	var changing []Action
	for _, a := range actions {
		// A held object does not take in endpoints yet, and that has to be known.
		if a.Verb != Leave || a.want.Name != "" && a.want.differs(a.have) != "" {
			changing = append(changing, a)
		}
	}
	if len(changing) < 2 {
		return nil
	}
	after, takers := make([][]member, len(changing)), map[uint32][]Ref{}
	for i, a := range changing {
		after[i] = membersOf(a.want.Spec)
		for address := range without(after[i], a.have.members) {
			takers[address] = append(takers[address], a.Ref)
		}
	}
	found := moves{}
	for i, a := range changing {
		for address := range without(a.have.members, after[i]) {
			to := slices.DeleteFunc(slices.Clone(takers[address]), func(r Ref) bool { return r == a.Ref })
			if len(to) == 0 {
				continue
			}
			if found[a.Ref] == nil {
				found[a.Ref] = map[uint32][]Ref{}
			}
			found[a.Ref][address] = to
		}
	}
	return found
}

// order puts the objects that take endpoints in before the objects that lose them. In a
// circle, one object comes twice: the first time it keeps the endpoints that the others
// have not taken in.
func (m moves) order(actions []Action) []Action {
	from := slices.IndexFunc(actions, func(a Action) bool { return a.Verb == Update })
	if len(m) == 0 || from < 0 {
		return actions
	}
	to := from
	for to < len(actions) && actions[to].Verb == Update {
		to++
	}
	remaining, waiting := slices.Clone(actions[from:to]), m.waiting(actions[from:to])
	var ordered, again []Action
	for len(remaining) > 0 {
		next := slices.IndexFunc(remaining, func(a Action) bool { return len(waiting[a.Ref]) == 0 })
		if next < 0 { // a circle
			next = 0
			again = append(again, remaining[0])
		}
		a := remaining[next]
		ordered, remaining = append(ordered, a), slices.Delete(remaining, next, next+1)
		for _, others := range waiting {
			delete(others, a.Ref)
		}
	}
	return slices.Concat(actions[:from], ordered, again, actions[to:])
}

// waiting returns the updates that each update waits for.
func (m moves) waiting(updates []Action) map[Ref]map[Ref]bool {
	waiting := map[Ref]map[Ref]bool{}
	for _, a := range updates {
		waiting[a.Ref] = map[Ref]bool{}
	}
	for _, a := range updates {
		for _, takers := range m[a.Ref] {
			for _, taker := range takers {
				if waiting[taker] != nil { // otherwise the taker is created or held, and the order does not matter
					waiting[a.Ref][taker] = true
				}
			}
		}
	}
	return waiting
}

// kept returns the addresses that an object must not lose yet, because a taker is not
// written.
func (m moves) kept(r Ref, written map[Ref]Observed) map[uint32]bool {
	keep := map[uint32]bool{}
	for address, takers := range m[r] {
		if slices.ContainsFunc(takers, func(taker Ref) bool { _, ok := written[taker]; return !ok }) {
			keep[address] = true
		}
	}
	return keep
}

// widened returns the action with some of the object's current endpoints added to the
// desired ones, to be kept for a while. An object to be deleted stays for these alone.
func (w *Writer) widened(ctx context.Context, a Action, keep map[uint32]bool) (Action, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	u, err := w.remote.get(ctx, a.Ref)
	switch {
	case apierrors.IsNotFound(err), err == nil && u.GetResourceVersion() != a.have.Version:
		return a, errRaced
	case err != nil:
		return a, asRejection(a.Ref, err)
	}
	is := convert.EntryOf(u.Object["spec"])
	a.Reason = "it keeps endpoints until another object has them"
	if a.Verb == Delete {
		a.Verb, a.want = Update, Object{
			Kind: a.Kind, Namespace: a.Namespace, Name: a.Name, Labels: marks(w.options.Instance),
			Annotations: map[string]string{}, Spec: narrow(is, keep),
		}
		for _, name := range []string{annotationSources, annotationService} {
			if value, ok := a.have.Annotations[name]; ok {
				a.want.Annotations[name] = value
			}
		}
		return a, nil
	}
	if want, ok := a.want.Spec.(*networking.ServiceEntry); ok {
		a.want.Spec, a.want.print = widen(want, is, keep), fingerprint{}
	}
	// The next leader must not narrow the object before it knows the kept endpoints.
	a.want.Annotations = maps.Clone(a.want.Annotations)
	a.want.Annotations[annotationSources] = union(a.want.Annotations[annotationSources], a.have.Annotations[annotationSources])
	return a, nil
}

// union unites two lists of names.
func union(a, b string) string {
	names := strings.Split(a, ",")
	for name := range strings.SplitSeq(b, ",") {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// narrow reduces a specification to the endpoints to be kept.
func narrow(is *networking.ServiceEntry, keep map[uint32]bool) *networking.ServiceEntry {
	less := proto.CloneOf(is)
	less.Endpoints = slices.DeleteFunc(less.Endpoints, func(e *networking.WorkloadEntry) bool {
		return !keep[memberOf(e).address()]
	})
	return less
}

// widest bounds the JSON length of a widened specification, well below the size of a
// request.
const widest = compose.MostBytes + compose.MostBytes/4

// widen adds endpoints of an existing specification to a desired one, if possible. With
// different ports, or DNS_ROUND_ROBIN, the desired specification stays unchanged.
func widen(want, is *networking.ServiceEntry, keep map[uint32]bool) *networking.ServiceEntry {
	if want.GetWorkloadSelector() != nil { // a selector excludes endpoints
		return want
	}
	samePorts := slices.EqualFunc(want.GetPorts(), is.GetPorts(), func(a, b *networking.ServicePort) bool { return proto.Equal(a, b) })
	if !samePorts || want.GetResolution() != is.GetResolution() || want.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN {
		return want
	}
	there, size := map[member]bool{}, len(convert.AppendSpec(nil, want))
	for _, m := range membersOf(want) {
		there[m] = true
	}
	wide := proto.CloneOf(want)
	for _, e := range is.GetEndpoints() {
		m := memberOf(e)
		if there[m] || !keep[m.address()] {
			continue
		}
		more := len(convert.AppendSpec(nil, e)) + 1
		if len(wide.GetEndpoints()) == compose.MostEndpoints || size+more > widest {
			break // the others are missing for a moment
		}
		wide.Endpoints, size = append(wide.Endpoints, e), size+more
	}
	return wide
}

package istio

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/model"
)

// moves are the endpoints that pass from one object of a service to another,
// since the ports that they serve have changed: of every object the addresses
// that it loses, and which objects take each of them in.
type moves map[Ref]map[uint32][]Ref

// movesOf finds what moves between objects.
func movesOf(actions []Action) moves {
	var changing []Action
	for _, a := range actions {
		// One that is held takes in nothing as yet, and that is to be known.
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

// order has the objects that take endpoints in written before those that lose
// them. Where some do so in a circle, one of them comes twice: at its first turn
// it keeps what the others have not taken in.
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

// waiting tells of each update for which others it waits.
func (m moves) waiting(updates []Action) map[Ref]map[Ref]bool {
	waiting := map[Ref]map[Ref]bool{}
	for _, a := range updates {
		waiting[a.Ref] = map[Ref]bool{}
	}
	for _, a := range updates {
		for _, takers := range m[a.Ref] {
			for _, taker := range takers {
				if waiting[taker] != nil { // else it is created, or held, and no order helps
					waiting[a.Ref][taker] = true
				}
			}
		}
	}
	return waiting
}

// kept are the addresses that an object must not lose yet, because one of those
// that are to take them in is not written.
func (m moves) kept(r Ref, written map[Ref]Observed) map[uint32]bool {
	keep := map[uint32]bool{}
	for address, takers := range m[r] {
		if slices.ContainsFunc(takers, func(taker Ref) bool { _, ok := written[taker]; return !ok }) {
			keep[address] = true
		}
	}
	return keep
}

// widened returns the action with endpoints that the object has now, and that it
// is to keep for a while, beside those that it should have. An object that is to
// go stays for these alone.
func (w *Writer) widened(ctx context.Context, a Action, keep map[uint32]bool) (Action, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	u, err := w.remote.get(ctx, a.Ref)
	switch {
	case apierrors.IsNotFound(err), err == nil && u.GetResourceVersion() != a.have.Version:
		return a, errRaced
	case err != nil:
		return a, fate(a.Ref, err)
	}
	is, _ := u.Object["spec"].(map[string]any)
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
	a.want.Spec = widen(a.want.Spec, is, keep)
	// Whoever leads next must not narrow it before it has heard of those that are kept.
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

// narrow leaves in a specification the endpoints that are to be kept.
func narrow(is map[string]any, keep map[uint32]bool) map[string]any {
	var list []any
	for _, e := range endpointsOf(is) {
		if keep[memberOf(e).address()] {
			list = append(list, e)
		}
	}
	less := maps.Clone(is)
	less["endpoints"] = list
	return less
}

// widest is how long a specification in JSON may be made, well below what fits
// into a request.
const widest = largest + largest/4

// widen adds endpoints of a specification that is there to one that is to be, as
// far as they can be said in it: where the ports are others, or names are looked
// up one at a time, it stays as it is.
func widen(want, is map[string]any, keep map[uint32]bool) map[string]any {
	if fingerprintOf(want["ports"]) != fingerprintOf(is["ports"]) || want["resolution"] != is["resolution"] ||
		want["resolution"] == string(model.ResolutionDNSRoundRobin) {
		return want
	}
	text, err := json.Marshal(want)
	if err != nil {
		return want
	}
	there, size := map[member]bool{}, len(text)
	for _, m := range membersOf(want) {
		there[m] = true
	}
	list, _ := want["endpoints"].([]any)
	list = slices.Clone(list)
	for _, e := range endpointsOf(is) {
		m := memberOf(e)
		if there[m] || !keep[m.address()] {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil || len(list) == allowed || size+len(text) > widest {
			break // the others go for a moment
		}
		list, size = append(list, any(e)), size+len(text)+1
	}
	wide := maps.Clone(want)
	wide["endpoints"] = list
	return wide
}

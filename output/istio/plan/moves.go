package plan

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Moves are the endpoints that move from one object of a service to another because their
// served ports have changed. For every object it has the addresses that the object loses,
// and the objects that take each of them in.
type Moves map[object.Ref]map[uint32][]object.Ref

// MovesOf finds the endpoints that move between objects.
func MovesOf(actions []Action) Moves {
	var changing []Action
	for _, a := range actions {
		// A held object does not take in endpoints yet, and that has to be known.
		if a.Verb != Leave || a.Want.Name != "" && a.Want.Differs(a.Have) != "" {
			changing = append(changing, a)
		}
	}
	if len(changing) < 2 {
		return nil
	}
	after, takers := make([][]object.Member, len(changing)), map[uint32][]object.Ref{}
	for i, a := range changing {
		after[i] = object.MembersOf(a.Want.Spec)
		for address := range object.Without(after[i], a.Have.Members) {
			takers[address] = append(takers[address], a.Ref)
		}
	}
	found := Moves{}
	for i, a := range changing {
		for address := range object.Without(a.Have.Members, after[i]) {
			to := slices.DeleteFunc(slices.Clone(takers[address]), func(r object.Ref) bool { return r == a.Ref })
			if len(to) == 0 {
				continue
			}
			if found[a.Ref] == nil {
				found[a.Ref] = map[uint32][]object.Ref{}
			}
			found[a.Ref][address] = to
		}
	}
	return found
}

// Order puts the objects that take endpoints in before the objects that lose them. In a
// circle, one object comes twice: the first time it keeps the endpoints that the others
// have not taken in.
func (m Moves) Order(actions []Action) []Action {
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
func (m Moves) waiting(updates []Action) map[object.Ref]map[object.Ref]bool {
	waiting := map[object.Ref]map[object.Ref]bool{}
	for _, a := range updates {
		waiting[a.Ref] = map[object.Ref]bool{}
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

// Kept returns the addresses that an object must not lose yet, because a taker is not
// written.
func (m Moves) Kept(r object.Ref, written map[object.Ref]object.Observed) map[uint32]bool {
	keep := map[uint32]bool{}
	for address, takers := range m[r] {
		if slices.ContainsFunc(takers, func(taker object.Ref) bool { _, ok := written[taker]; return !ok }) {
			keep[address] = true
		}
	}
	return keep
}

// UrgencyOf returns the urgency of a key's remaining actions. A removed endpoint still gets
// traffic, and a new one gets none yet.
func UrgencyOf(actions []Action) controller.Urgency {
	urgency := controller.Routine
	for _, a := range actions {
		switch a.Verb {
		case Leave:
		case Delete:
			return controller.MostUrgent
		case Create:
			urgency = max(urgency, controller.Urgent)
		default:
			after := object.MembersOf(a.Want.Spec)
			if len(object.Without(a.Have.Members, after)) > 0 {
				return controller.MostUrgent
			}
			if len(object.Without(after, a.Have.Members)) > 0 {
				urgency = max(urgency, controller.Urgent)
			}
		}
	}
	return urgency
}

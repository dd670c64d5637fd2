package conflict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// conflicts makes one conflict of all losses of a service to one owner.
func (l portLosses) conflicts() portConflicts {
	type pair struct {
		loser, winner catalog.ServiceKey
		kind          reach.LossKind
		own           bool
		kept, lost    model.Ref
	}
	all, lost := map[pair]reach.Loss{}, map[pair][]string{}
	for thing, loss := range l.first {
		asked := loss.Asked(l.proxy.Cluster)
		own := asked.Owner("", loss.Winner, loss.Loser) > 0
		u := pair{thing.loser, loss.Winner.Key, loss.Kind, own, asked.RecordOf(loss.Winner.Definition), asked.RecordOf(loss.Loser.Definition)}
		all[u], lost[u] = loss, append(lost[u], loss.Name)
	}
	found := portConflicts{}
	for u, loss := range all {
		slices.Sort(lost[u])
		found[u.loser] = append(found[u.loser], conflictOf(loss, l.index.Number, lost[u], u.own, u.kept, u.lost))
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b catalog.Conflict) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason))
		})
	}
	return found
}

const (
	otherHost    = "choose another host for it, or another port"
	otherAddress = "give it an address of its own, or another port"
	otherPort    = "give one of the two another port"
)

// lossTexts are the field and the reason of the conflict of each kind of loss. The arguments
// of a reason are the port, the names, the owner's host and namespace, the views, and the
// loser's host.
var lossTexts = [...]struct{ field, reason string }{
	reach.LostConnections:  {"ports[%d].addresses", "connections to port %d of %s go to %s of namespace %s %s, and not to %s; " + otherAddress},
	reach.LostToHandshakes: {"ports[%d].addresses", "connections to port %d of %s are routed by SNI, as %s of namespace %s needs it %s, so no requests go to %s; " + otherAddress},
	reach.LostUnread:       {"ports[%d].protocol", "connections to port %d of %s are not inspected, since the server of %s of namespace %s may speak first %s, so none go to %s; " + otherPort},
	reach.LostRead:         {"ports[%d].protocol", "connections to port %d of %s are inspected, to find those of %s of namespace %s %s, so none go to %s, whose server may speak first; " + otherPort},
	reach.LostInstances:    {"ports[%d].addresses", "sidecars listen at 250 instances of port %d at most, over all services without %s, and %s of namespace %s comes first %s, so no connections to instances go through listeners of %s; give it an address, or its callers a Sidecar"},
	reach.TakesAll:         {"ports[%d].unaddressed", "connections to port %d of %s go to %s of namespace %s %s, whoever they are for, since unaddressed is all; with none they go where they are addressed: give %s an address, let sidecars answer lookups (dns), or give this host alone unaddressed: all"},
	reach.LostAddressed:    {"ports[%d].addresses", "connections to port %d of %s that name no host go through no listener for %s of namespace %s %s: they go where they are addressed, or end with outbound: registry; give %s an address, or name it in dns.allot.hosts"},
	reach.LostInBlocks:     {"ports[%d].sni", "handshakes at port %d for %s go to %s of namespace %s in its blocks of addresses %s, and not to %s, since a listener matches at most 10,000 pairs of address block and host; " + otherPort},
	reach.LostBlock:        {"ports[%d].addresses", "connections to port %d of %s are routed by SNI, as %s of namespace %s needs it %s, and not to %s, since a listener matches at most 10,000 pairs of address block and host; " + otherPort},
	reach.LostRequests:     {"ports[%d].domain", "requests at port %d for %s go to %s of namespace %s %s, and not to %s; " + otherHost},
}

// conflictOf describes a loss and its remedy. Own limits the loss to workloads of the owner's
// namespace.
func conflictOf(l reach.Loss, number uint32, names []string, own bool, kept, lost model.Ref) catalog.Conflict {
	where := "in every namespace that sees both"
	switch {
	case l.Winner.Key == l.Loser.Key:
		where = "in every namespace that sees it"
	case own:
		where = "for workloads of that namespace"
	}
	text := lossTexts[l.Kind]
	return catalog.Conflict{
		Field: fmt.Sprintf(text.field, number), Kept: kept, Lost: lost,
		Reason: fmt.Sprintf(text.reason, number, strings.Join(names, ", "), l.Winner.Key.Host, l.Winner.Key.Namespace, where, l.Loser.Key.Host),
	}
}

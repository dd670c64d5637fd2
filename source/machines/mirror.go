package machines

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// denials is the number of consecutive denials after which a group counts as gone.
// Parts of a cloud may lag behind, and two rounds lie far apart.
const denials = 2

// known is the last reading of a group, and its errors since.
type known struct {
	machines map[string]Machine
	read     time.Time // zero if it was never read
	asked    time.Time // end of the last reading, successful or not; zero before
	denied   int       // consecutive denials
	err      error     // why the group cannot be read now; nil if it can
	since    time.Time // start of the failure
}

// mirror maps each group to its last reading.
type mirror map[Group]*known

func (m mirror) of(g Group) *known {
	if m[g] == nil {
		m[g] = &known{}
	}
	return m[g]
}

// enter takes the outcome of a reading of a group.
func (k *known) enter(machines []Machine, err error, now time.Time) {
	k.asked = now
	if !errors.Is(err, ErrGone) {
		k.denied = 0
	} else if k.denied++; k.gone() {
		machines, err = nil, nil
	}
	if err == nil && k.read.IsZero() && areUnknown(machines) {
		err = errUnknown
	}
	if err != nil {
		if k.err == nil {
			k.since = now
		}
		k.err = err
		return
	}
	next := make(map[string]Machine, len(machines))
	served := slices.ContainsFunc(machines, func(m Machine) bool { return m.State == Serving })
	for _, one := range machines {
		next[one.ID] = one.after(k.machines[one.ID], served)
	}
	k.machines, k.read, k.err, k.since = next, now, nil, time.Time{}
}

// errUnknown rejects a first reading in which no state is known. The reading would
// turn machines unhealthy that an earlier run of Isthmus stored as healthy.
var errUnknown = errors.New("the cloud does not know the state of any of its machines yet; look at its health, this is tried again")

// areUnknown reports whether there are machines, and none has a known state.
func areUnknown(list []Machine) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(m Machine) bool { return m.State != Unknown && m.State != Unanswered })
}

func (k *known) gone() bool { return k.denied >= denials }

// forget drops groups that no service has any more.
func (m mirror) forget(groups []Group) {
	used := make(map[Group]bool, len(groups))
	for _, g := range groups {
		used[g] = true
	}
	maps.DeleteFunc(m, func(g Group, _ *known) bool { return !used[g] })
}

// failing returns why no group can be read; nil if one was read, or there is none.
func (m mirror) failing() error {
	var failing []Group
	for _, g := range slices.SortedFunc(maps.Keys(m), Group.Compare) {
		switch k := m[g]; {
		case k.err != nil:
			failing = append(failing, g)
		case !k.read.IsZero():
			return nil
		}
	}
	switch len(failing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w", failing[0], m[failing[0]].err)
	}
	return fmt.Errorf("%s: %w; %d others cannot be read either", failing[0], m[failing[0]].err, len(failing)-1)
}

// located is a definition with its groups.
type located struct {
	Definition
	namespace string // of the object that defines it; empty for the configuration
	groups    []Group
}

// report adds the faults of a group to a listing.
func (k *known) report(g Group, listing *model.Listing) {
	if k.err != nil && !k.read.IsZero() {
		// The group is no place of any record: the rejection keeps only records that
		// are listed anew.
		listing.Rejected = append(listing.Rejected, model.Rejection{
			Place: g.String(), Object: g.String(), Where: g.String(),
			Reason: fmt.Sprintf("cannot be read since %s: %v; its %d machines stay as they were at %s",
				k.since.UTC().Format(time.RFC3339), k.err, len(k.machines), k.read.UTC().Format(time.RFC3339)),
		})
	}
	if k.gone() {
		listing.Notices = append(listing.Notices, model.Notice{
			Object: g.String(), Where: g.Scope, Text: "does not exist, so it has no machines; correct its name, or remove it",
		})
	}
	for _, id := range slices.Sorted(maps.Keys(k.machines)) {
		if !k.machines[id].Address.IsValid() {
			listing.Notices = append(listing.Notices, model.Notice{
				Object: "machine " + id, Where: g.String(), Text: "has no primary network interface with an address, so it is no endpoint; give it one if it is to be",
			})
		}
	}
}

// unread returns the groups that were never read, and the reason for the first of
// them.
func (m mirror) unread(groups []Group) (unread []Group, reason error) {
	for _, g := range groups {
		k := m.of(g)
		if !k.read.IsZero() {
			continue
		}
		if unread = append(unread, g); reason == nil {
			reason = cmp.Or(k.err, errUnasked)
		}
	}
	return unread, reason
}

// errUnasked explains an unread group during a pause.
var errUnasked = errors.New("it has not been asked for yet")

// machines returns the machines of all groups, each once, ordered by ID.
func (m mirror) machines(groups []Group) []Machine {
	all := map[string]Machine{}
	for _, g := range groups {
		maps.Copy(all, m.of(g).machines)
	}
	list := make([]Machine, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id])
	}
	return list
}

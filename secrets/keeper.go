package secrets

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

const (
	retry = 10 * time.Second // the wait after an issuer has failed
	// longest bounds a wait. Windows are of the wall clock, which a suspended or corrected
	// machine moves without the timer.
	longest = time.Minute
)

// Keeper has the newest leaf of each identity with a connected client.
type Keeper struct {
	issuer Issuer
	events *events.Clients
	log    *slog.Logger
	leaves sync.Map      // *Leaf by identity; read without a lock
	wake   chan struct{} // something may be due earlier than the end of the wait
	first  *Bundle       // the bundle before Run

	mu   sync.Mutex
	uses map[string]*use // by identity
}

// use is the use of the leaves of an identity. The leaf stays without users until the window ends, so
// that a client that comes back costs no signature. The record stays while a leaf is valid.
type use struct {
	Out
	due    time.Time // when the leaf is made anew, or forgotten
	failed string    // why the last one was not made; empty if it was
}

// NewKeeper returns a keeper of leaves by an issuer. Events takes the first leaf of each identity, and
// each reason why one was not made.
func NewKeeper(issuer Issuer, events *events.Clients, log *slog.Logger) *Keeper {
	return &Keeper{issuer: issuer, events: events, log: log, wake: make(chan struct{}, 1), first: issuer.Bundle(), uses: map[string]*use{}}
}

// Leaf returns the newest leaf of an identity; nil if none is kept.
func (k *Keeper) Leaf(identity string) *Leaf {
	leaf, _ := k.leaves.Load(identity)
	is, _ := leaf.(*Leaf)
	return is
}

// Bundle returns the authorities that clients are to trust.
func (k *Keeper) Bundle() *Bundle { return k.issuer.Bundle() }

// Hold keeps the leaf of an identity until release is called, and makes it unless it is
// there. The caller has a client that may be sent it, and calls release when the proof of that client
// ends. If the issuer fails, it is asked again later, and a reason that lasts is logged once.
func (k *Keeper) Hold(identity string) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	u := k.uses[identity]
	if u == nil {
		u = &use{Out: Out{Identity: identity}}
		k.uses[identity] = u
	}
	u.Last = time.Now()
	if u.Streams++; k.Leaf(identity) == nil {
		k.issue(identity, u, time.Now())
		k.rouse()
	}
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		u.Streams--
		u.Last = time.Now()
	})
}

// rouse lets Run look again for leaves that are due.
func (k *Keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// issue makes the leaf of the window of a time, and reports whether there is one.
func (k *Keeper) issue(identity string, u *use, now time.Time) bool {
	leaf, err := k.issuer.Issue(identity, now)
	if err != nil {
		if u.failed != err.Error() {
			k.events.Add(events.Uncertified, "", fmt.Sprintf("as %s: %v", identity, err))
			k.log.Error("no certificate can be made; the one before stays in use, and it is tried again", "identity", identity, "err", err)
		}
		u.due, u.failed = now.Add(retry), err.Error()
		return false
	}
	if u.Until.IsZero() {
		k.events.Add(events.Certified, "", fmt.Sprintf("as %s, valid until %s", identity, leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	if leaf.NotAfter.After(u.Until) {
		u.Until = leaf.NotAfter
	}
	u.due, u.Window, u.failed = leaf.Window.Until, leaf.Window, ""
	k.leaves.Store(identity, leaf)
	return true
}

// Out is the leaves of an identity that were made for clients, and that are valid.
type Out struct {
	Identity string
	Window   Window    // of the newest one
	Until    time.Time // the end of the last one that ends; zero without one
	Streams  int       // of clients that may be sent the next one
	Last     time.Time // when the last stream began or ended
}

// All returns the leaves that are out, by their identities.
func (k *Keeper) All() (list []Out) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.uses {
		if u.Until.After(now) {
			list = append(list, u.Out)
		}
	}
	slices.SortFunc(list, func(a, b Out) int { return strings.Compare(a.Identity, b.Identity) })
	return list
}

// Renewal names the identities with another leaf, and says whether the bundle is another.
type Renewal struct {
	Identities []string
	Bundle     bool
}

// Run makes leaves anew until ctx ends. It calls changed for leaves that were made after Hold had
// returned without them, for leaves that follow others, and when the bundle is another.
func (k *Keeper) Run(ctx context.Context, changed func(Renewal)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next <-chan struct{}
	for bundle, outdated := k.first, true; ; {
		if outdated {
			next, outdated = k.issuer.Changed(), false // before the look, so that no change is missed
			k.outdate(time.Now())
		}
		renewed, wait := k.renew(time.Now())
		now := k.Bundle()
		if now != bundle || len(renewed) > 0 {
			changed(Renewal{renewed, now != bundle})
		}
		bundle = now
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-next:
			outdated = true
		case <-k.wake: // next stays, so a change at the same time is seen in the next round
		case <-timer.C:
		}
	}
}

// outdate makes leaves due that may not stay.
func (k *Keeper) outdate(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for identity, u := range k.uses {
		if leaf := k.Leaf(identity); leaf == nil || !k.issuer.Current(leaf) {
			u.due = now
		}
	}
}

// renew makes the leaves that are due, forgets leaves without users, and returns the wait
// for the next. Between two leaves it lets clients have the lock.
func (k *Keeper) renew(now time.Time) (renewed []string, next time.Duration) {
	for _, identity := range k.dueAt(now) {
		if k.renewOne(identity, now) {
			renewed = append(renewed, identity)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next = longest
	for _, u := range k.uses {
		next = min(next, u.due.Sub(now))
	}
	return renewed, next
}

// dueAt returns the identities with a leaf that is due.
func (k *Keeper) dueAt(now time.Time) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for identity, u := range k.uses {
		if !u.due.After(now) {
			list = append(list, identity)
		}
	}
	return list
}

// renewOne makes the leaf of an identity, or forgets it if no client uses it. It reports whether it
// made one. Only it removes uses, so the identity has one.
func (k *Keeper) renewOne(identity string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	u := k.uses[identity]
	switch {
	case u.due.After(now): // made meanwhile for a client
		return false
	case u.Streams > 0:
		return k.issue(identity, u, now)
	}
	k.leaves.Delete(identity)
	if u.due = u.Until; !u.due.After(now) { // no other workload accepts the last leaf any more
		delete(k.uses, identity)
	}
	return false
}

package identity

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// Grace is for how long a stream goes on after its token expired.
const Grace = time.Minute

// never is a duration that no process lasts.
const never = 100 * 365 * 24 * time.Hour

// Keep calls end once a proof does not hold any more: its token expired longer than [Grace]
// ago, or its account or token was revoked. It is called at most once, on a goroutine of its
// own, and not after release. The connection of a certificate watches the certificate itself.
func (v *Verifier) Keep(p Proof, end func(error)) (release func()) {
	if v == nil || p.ID == "" {
		return func() {}
	}
	k := &kept{proof: p}
	after := never
	if !p.Expires.IsZero() {
		after = time.Until(p.Expires.Add(Grace))
	}
	k.timer = time.AfterFunc(after, func() {
		if why, first := k.finish(); first {
			end(why)
		}
	})
	for _, list := range v.revoked {
		list.keep(k)
	}
	return func() {
		for _, list := range v.revoked {
			list.leave(k)
		}
		k.release()
	}
}

// kept is a proof in use. Its timer ends the use: at the end of the token, or at once when
// it is revoked.
type kept struct {
	proof Proof
	timer *time.Timer

	mu   sync.Mutex
	done bool  // end was called, or the proof released
	why  error // of a revocation
}

// finish returns why the use of the proof ends, and whether it had not ended yet.
func (k *kept) finish() (why error, first bool) { //nolint:revive // the error is a value
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return nil, false
	}
	k.done = true
	if k.why != nil {
		return k.why, true
	}
	return fmt.Errorf("the token of %s expired at %s; connect again with a new one", k.proof.ID, k.proof.Expires.UTC().Format(time.RFC3339)), true
}

func (k *kept) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	k.timer.Stop()
}

// revoke ends the use at once.
func (k *kept) revoke(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done && k.why == nil {
		k.why = why
		k.timer.Reset(0)
	}
}

// revoked is the revocations in a file, and the proofs in use.
type revoked struct {
	file *watched[revocationSet]
	log  *slog.Logger

	mu  sync.Mutex
	set revocationSet
	use map[*kept]struct{}
}

// revocationSet has the revocations by id.
type revocationSet struct{ accounts, tokens map[string]time.Time }

func parseRevocationSet(text []byte) (set revocationSet, err error) {
	read, err := parseRevocations(text)
	return revocationSet{byID(read.Accounts), byID(read.Tokens)}, err
}

func byID(list []Revocation) map[string]time.Time {
	ids := make(map[string]time.Time, len(list))
	for _, one := range list {
		ids[one.ID] = one.Since
	}
	return ids
}

// rejects returns the revocation of a proof.
func (s revocationSet) rejects(p Proof) error {
	if since, ok := s.accounts[p.ID]; ok {
		return fmt.Errorf("the account %s is revoked since %s", p.ID, since.UTC().Format(time.RFC3339))
	}
	if since, ok := s.tokens[p.Token]; ok && p.Token != "" {
		return fmt.Errorf("the token %s of %s is revoked since %s; connect with another one", clip(p.Token), p.ID, since.UTC().Format(time.RFC3339))
	}
	return nil
}

func newRevoked(f revocationFile, log *slog.Logger) *revoked {
	r := &revoked{
		file: &watched[revocationSet]{path: f.path, most: mostRevocations, optional: f.optional},
		log:  log.With("file", f.path), use: map[*kept]struct{}{},
	}
	r.set = r.file.look(parseRevocationSet).value
	return r
}

func (r *revoked) fault() fault { return r.file.now.Load().fault }

// follow looks at the file every second.
func (r *revoked) follow(ctx context.Context) {
	var last fault
	for wait.Sleep(ctx, time.Second) {
		before := r.file.now.Load()
		now := r.file.look(parseRevocationSet)
		last = report(r.log, last, now.fault)
		if now.read.After(before.read) && now.fault.err == nil {
			r.apply(now.value)
		}
	}
}

// apply puts revocations into effect: no new proof, and the end of those in use.
func (r *revoked) apply(set revocationSet) {
	ended := r.replace(set)
	for k, why := range ended {
		k.revoke(why)
	}
	if len(ended) > 0 {
		r.log.Info("streams end because their account or token was revoked", "streams", len(ended))
	}
}

func (r *revoked) replace(set revocationSet) map[*kept]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = set
	ended := map[*kept]error{}
	for k := range r.use {
		if why := set.rejects(k.proof); why != nil {
			ended[k] = why
		}
	}
	return ended
}

func (r *revoked) rejects(p Proof) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set.rejects(p)
}

// keep adds a proof in use, and ends it if it was revoked since it was proven.
func (r *revoked) keep(k *kept) {
	r.mu.Lock()
	r.use[k] = struct{}{}
	why := r.set.rejects(k.proof)
	r.mu.Unlock()
	if why != nil {
		k.revoke(why)
	}
}

func (r *revoked) leave(k *kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.use, k)
}

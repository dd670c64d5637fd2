package identity

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Verifier decides who clients are. A nil Verifier takes certificates alone.
type Verifier struct {
	config  Config
	root    string // the root namespace
	issuers map[string]*issuer
	order   []string // the issuers, as configured
	revoked *revoked // nil without an authority
	foreign foreigners
	log     *slog.Logger
}

// New returns the verifier of a configuration; identities of the root namespace may read everything.
// It fails if the configuration is invalid, or
// if the revocations cannot be read: without them, revoked accounts would be served. Keys
// that cannot be read are a problem of their issuer alone.
func New(c Config, rootNamespace string, log *slog.Logger) (*Verifier, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{config: c, root: rootNamespace, issuers: map[string]*issuer{}, log: log}
	for i, one := range c.issuers() {
		log := log.With("issuer", one.Issuer)
		from := &issuer{Issuer: one, authority: i >= len(c.JWT)}
		if one.KeysFile != "" {
			from.keys = &fileKeys{watchedKeys(one.KeysFile), log}
		} else {
			from.keys = newRemoteKeys(one.remote(), log)
		}
		v.issuers[one.Issuer] = from
		v.order = append(v.order, one.Issuer)
	}
	if c.Authority.Dir == "" {
		return v, nil
	}
	v.revoked = newRevoked(filepath.Join(c.Authority.Dir, RevokedFile), log)
	if err := v.revoked.fault().err; err != nil {
		return nil, fmt.Errorf("authority.dir: %w", err)
	}
	return v, nil
}

// Run refreshes the keys of issuers and follows revocations until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	var parts errgroup.Group
	for _, one := range v.issuers {
		parts.Go(func() error { one.keys.follow(ctx); return nil })
	}
	if v.revoked != nil {
		parts.Go(func() error { v.revoked.follow(ctx); return nil })
	}
	return parts.Wait()
}

// TakesTokens reports whether tokens are evidence.
func (v *Verifier) TakesTokens() bool { return v != nil && len(v.issuers) > 0 }

// Prove returns the identity that the evidence proves, and the zero Proof without evidence.
// All evidence has to be valid and of one identity; otherwise it fails. It waits at most
// some seconds for the keys of an issuer.
func (v *Verifier) Prove(ctx context.Context, e Evidence) (Proof, error) {
	var proven Proof
	for _, by := range v.provers() {
		one, err := by.prove(ctx, e)
		switch {
		case err != nil:
			return Proof{}, err
		case one.ID == "":
		case proven.ID != "" && proven.ID != one.ID:
			return Proof{}, fmt.Errorf("the %s is of %s, and the %s of %s; both have to be of one identity", proven.By, proven.ID, one.By, one.ID)
		default:
			proven = one
		}
	}
	if v != nil && v.revoked != nil {
		if err := v.revoked.rejects(proven); err != nil {
			return Proof{}, err
		}
	}
	return proven, nil
}

// Problems returns the lasting failures, in the order of the configuration.
func (v *Verifier) Problems() []Problem {
	if v == nil {
		return nil
	}
	var found []Problem
	for _, name := range v.order {
		if problem := v.issuers[name].keys.problem(); problem.Reason != "" {
			problem.About = fmt.Sprintf("issuer %q", name)
			found = append(found, problem)
		}
	}
	if v.revoked != nil {
		if now := v.revoked.fault(); now.err != nil {
			found = append(found, Problem{
				About: "revocations", Since: now.since, Reason: fmt.Sprintf("they cannot be read: %v; the last ones stay in effect", now.err),
				Next: "repair the file, or restore it from a backup; it is read again every second",
			})
		}
	}
	return append(found, v.foreign.problems(v.config.Domain())...)
}

package identity

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Verifier decides who clients are. A nil Verifier takes certificates alone.
type Verifier struct {
	config  Config
	root    string // the root namespace
	issuers map[string]*issuer
	order   []string // the issuers, as configured
	revoked []*revoked
	log     *slog.Logger

	foreign sightings // of certificates with lenient rights, by trust domain
	sent    sent
}

// New returns the verifier of a configuration; identities of the root namespace may read everything.
// It fails if the configuration is invalid, or if a list of revocations cannot be read: without it,
// revoked accounts would be served. Keys
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
	for _, file := range c.revocationFiles() {
		list, err := file.open(log)
		if err != nil {
			return nil, err
		}
		v.revoked = append(v.revoked, list)
	}
	return v, nil
}

// Run refreshes the keys of issuers and follows revocations until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	var parts errgroup.Group
	for _, one := range v.issuers {
		parts.Go(func() error { one.keys.follow(ctx); return nil })
	}
	for _, list := range v.revoked {
		parts.Go(func() error { list.follow(ctx); return nil })
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
	if v == nil {
		return proven, nil
	}
	for _, list := range v.revoked {
		if err := list.rejects(proven); err != nil {
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
	for _, list := range v.revoked {
		if now := list.fault(); now.err != nil {
			found = append(found, Problem{
				About: "revocations", Since: now.since, Reason: fmt.Sprintf("they cannot be read: %v; the last ones stay in effect", now.err),
				Next: "repair the file, or restore it from a backup; it is read again every second",
			})
		}
	}
	return slices.Concat(found, v.foreigners(), v.returnedCertificates())
}

package sds

import (
	"strconv"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// Own returns a secret of an identity: its certificate, under two names, if it may be sent that, or the
// authorities that it is to trust. Without a keeper or an identity there is none; nor is an empty list of
// authorities one, with which an Envoy would trust any certificate. The keeper has the newest
// certificates, so subjects differ by the renewal at which they were looked up: otherwise the
// worlds before and after a renewal would seem equal.
func Own(keeper *secrets.Keeper, renewal uint64, identity string, certified bool, name string) (world.Subject, bool) {
	if keeper == nil || identity == "" {
		return nil, false
	}
	switch name {
	case names.Authorities:
		bundle := keeper.Bundle()
		return authorities{bundle, renewal}, len(bundle.Authorities) > 0
	case names.OwnCertificate, identity:
		leaf := keeper.Leaf(identity)
		return certificate{name, leaf, renewal}, certified && leaf != nil
	default:
		return nil, false
	}
}

// Renewed lists the changes of a renewal. The audience of a certificate is its identity.
func Renewed(row world.Row, r secrets.Renewal) (list []world.Changed) {
	if r.Bundle {
		list = append(list, world.Changed{Row: row, Name: names.Authorities})
	}
	for _, identity := range r.Identities {
		for _, name := range []string{names.OwnCertificate, identity} {
			list = append(list, world.Changed{Row: row, Name: name, Audience: []string{identity}})
		}
	}
	return list
}

// certificate is the certificate of an identity with its key.
type certificate struct {
	name string
	leaf *secrets.Leaf
	at   uint64 // the renewal
}

// Slot implements [world.Subject].
func (s certificate) Slot() any {
	return struct{ name, identity string }{s.name, s.leaf.Identity}
}

// Encode implements [world.Subject]. The version is one of everything that decides which
// certificate a client should have, and not of the key: another replica makes another key, and
// sends nothing again.
func (s certificate) Encode() world.Encoded {
	window := strconv.FormatInt(s.leaf.Window.From.Unix(), 10)
	body := func(key []byte) []byte {
		return wire.Any(s.name, wire.SecretURL, wire.CertificateSecret(s.name, s.leaf.Chain, key))
	}
	return world.Encoded{
		Name: s.name, Body: body(s.leaf.Key), Shown: body(nil),
		Version: world.VersionOf([]byte(s.name), []byte(s.leaf.Identity), []byte(s.leaf.Generation), []byte(window)),
	}
}

// authorities are the authorities that clients of all identities are to trust.
type authorities struct {
	bundle *secrets.Bundle
	at     uint64 // the renewal
}

// Slot implements [world.Subject].
func (s authorities) Slot() any { return authorities{} }

// Encode implements [world.Subject].
func (s authorities) Encode() world.Encoded {
	body := wire.Any(names.Authorities, wire.SecretURL, wire.AuthoritySecret(names.Authorities, s.bundle.Authorities))
	return world.Encoded{Name: names.Authorities, Version: world.VersionOf(body), Body: body}
}

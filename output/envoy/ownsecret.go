package envoy

import (
	"strconv"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// viewSecrets adds the identity to the view of secrets. So no two identities share one.
func viewSecrets(_ *state, c push.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.account = c.Account
	}
}

// secretAudience returns the keys of a client: secrets of files change for namespaces, and
// certificates for an identity.
func secretAudience(c push.Client) []string {
	if c.Account == "" {
		return []string{c.Namespace}
	}
	return []string{c.Namespace, c.Account}
}

// Renewed lists the secrets that change when identities have new certificates.
func Renewed(identities []string) (list []push.Changed) {
	for _, identity := range identities {
		for _, name := range []string{names.OwnCertificate, identity} {
			list = append(list, push.Changed{Row: SecretType, Name: name, Audience: []string{identity}})
		}
	}
	return list
}

// findOwnSecret returns a secret of the proven identity of a view: its certificate, under two
// names, or the authorities that it is to trust. There is none for another identity.
func findOwnSecret(w *state, v View, name string) (push.Subject, bool) {
	if w.secrets == nil || v.account == "" {
		return nil, false
	}
	switch name {
	case names.Authorities:
		return authoritySecret{w.secrets.Bundle()}, true
	case names.OwnCertificate, v.account:
		leaf := w.secrets.Leaf(v.account)
		return certificateSecret{name, leaf, w.secrets.Bundle()}, leaf != nil
	default:
		return nil, false
	}
}

// certificateSecret is the certificate of an identity with its key.
type certificateSecret struct {
	name   string
	leaf   *secrets.Leaf
	bundle *secrets.Bundle
}

var _ push.Confidential = certificateSecret{}

// Slot implements [push.Subject].
func (s certificateSecret) Slot() any {
	return struct{ name, identity string }{s.name, s.leaf.Identity}
}

// Encode implements [push.Subject]. The version is one of everything that decides which
// certificate a client should have, and not of the key: another replica makes another key, and
// sends nothing again.
func (s certificateSecret) Encode() push.Encoded {
	e := encode(s.name, wire.SecretURL, wire.CertificateSecret(s.name, s.leaf.Chain, s.leaf.Key))
	window := strconv.FormatInt(s.leaf.Window.From.Unix(), 10)
	e.Version = push.VersionOf([]byte(s.name), []byte(s.leaf.Identity), s.bundle.Authorities, []byte(s.leaf.Generation), []byte(window))
	return e
}

// Redacted implements [push.Confidential].
func (s certificateSecret) Redacted() push.Encoded {
	e := encode(s.name, wire.SecretURL, wire.CertificateSecret(s.name, s.leaf.Chain, nil))
	e.Version = s.Encode().Version
	return e
}

// authoritySecret is the authorities that clients of all identities are to trust.
type authoritySecret struct{ bundle *secrets.Bundle }

// Slot implements [push.Subject].
func (s authoritySecret) Slot() any { return authoritySecret{} }

// Encode implements [push.Subject].
func (s authoritySecret) Encode() push.Encoded {
	return encode(names.Authorities, wire.SecretURL, wire.AuthoritySecret(names.Authorities, s.bundle.Authorities))
}

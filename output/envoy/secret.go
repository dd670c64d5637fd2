package envoy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/sds"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// securedServices are the services with clusters that name secrets, by secret. They are
// immutable, and made from those before.
type securedServices struct {
	all immutable.Map[securedKey, struct{}]
}

// securedKey is a service under the name of a secret.
type securedKey struct {
	secret string
	catalog.ServiceKey
}

// securedIn are the secured services of a snapshot; nil if no host has TLS.
func securedIn(s *policy.Prepared, now *catalog.Snapshot) *securedServices {
	if len(s.SecretNames) == 0 {
		return nil
	}
	all := immutable.New[securedKey, struct{}](func(a, b securedKey) int {
		return cmp.Or(strings.Compare(a.secret, b.secret), catalog.ServiceKey.Compare(a.ServiceKey, b.ServiceKey))
	}).Edit()
	for service := range now.Services() {
		enterSecured(s, all, service.ServiceDefinition)
	}
	return &securedServices{all.Map()}
}

// after are the secured services after a change.
func (d *securedServices) after(c catalog.Change, s *policy.Prepared) *securedServices {
	if d == nil {
		return nil
	}
	all := d.all.Edit()
	for key, service := range c.Services {
		for secret := range s.Of(key.Host).TLS.FileSecrets() {
			all.Delete(securedKey{secret, key})
		}
		if service.New != nil {
			enterSecured(s, all, service.New.ServiceDefinition)
		}
	}
	return &securedServices{all.Map()}
}

// enterSecured enters a service under each secret that a cluster of it names.
func enterSecured(s *policy.Prepared, all *immutable.Editor[securedKey, struct{}], service catalog.ServiceDefinition) {
	u := reach.TLSFor(s.Of(service.Key.Host).TLS, service)
	if !slices.ContainsFunc(service.Ports, func(p model.Port) bool { return reach.HasCluster(service, p.Number) }) {
		return
	}
	for secret := range u.FileSecrets() {
		all.Set(securedKey{secret, service.Key}, struct{}{})
	}
}

// findSecret returns a secret of the client's own identity, or one that a cluster of the view
// names. No other client is sent the paths.
func findSecret(w *state, v View, name string) (world.Subject, bool) {
	if own, found := sds.Own(w.secrets, w.renewals, v.account, v.certified, name); found {
		return own, true
	}
	if v.Kind != reach.KindEnvoy || w.definitions == nil || w.definitions.secured == nil {
		return nil, false
	}
	for key := range w.definitions.secured.all.From(securedKey{secret: name}) {
		if key.secret != name {
			break
		}
		if s, ok := w.snapshot.Resolve(v.viewer(), key.Host); ok && s.Key == key.ServiceKey {
			return sds.File(name), true
		}
	}
	return nil, false
}

// secretNames yields the names of the secrets of a view.
func secretNames(w *state, v View) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range []string{names.OwnCertificate, names.Authorities} {
			if _, ok := sds.Own(w.secrets, w.renewals, v.account, v.certified, name); ok && !yield(name) {
				return
			}
		}
		for _, name := range w.settings.SecretNames {
			if _, ok := findSecret(w, v, name); ok && !yield(name) {
				return
			}
		}
	}
}

// noteSecrets notes the secrets of a host if its service was added or removed, or has changed
// more than endpoints.
func noteSecrets(s *policy.Prepared, noted audiences, host string, namespaces []string) {
	for secret := range s.Of(host).TLS.FileSecrets() {
		noted.add(sharedName{SecretType, secret}, namespaces)
	}
}

// viewSecrets adds the identity to the view of secrets. So no two identities share one.
func viewSecrets(_ *state, c world.Client, v *View) {
	if c.Kind == reach.KindEnvoy {
		v.account, v.certified = c.Account, c.Certified
	}
}

// secretAudience returns the keys of a client: secrets of files change for namespaces, and
// certificates for an identity.
func secretAudience(c world.Client) []string {
	if c.Account == "" {
		return []string{c.Namespace}
	}
	return []string{c.Namespace, c.Account}
}

// Renewed returns the step from a world to one after a renewal of certificates.
func Renewed(w world.World, r secrets.Renewal) world.Update {
	before, ok := w.(*World)
	if !ok {
		return world.Update{World: w}
	}
	after := *before
	after.renewals++
	return world.Update{World: &after, Changed: sds.Renewed(SecretType, r)}
}

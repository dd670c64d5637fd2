package config

import (
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/xds"
)

// Outputs are the destinations of the catalog, at most one of each kind. A missing one is
// disabled.
type Outputs []Output

// Output is one output.
type Output struct {
	Kind     string // its key
	Settings output.Settings
}

// keys and settings implement extensible: each kind of output is a key.
func (o *Outputs) keys(kinds Kinds) []string { return names(kinds.Outputs, outputKind) }

func (o *Outputs) settings(kinds Kinds, key string) (into any, known bool) {
	kind, ok := find(kinds.Outputs, outputKind, key)
	if !ok {
		return nil, false
	}
	settings := kind.New()
	*o = append(*o, Output{key, settings})
	return settings, true
}

// takeIdentity has the outputs take tokens that can, and certificates of an authority if there
// is one.
func (o Outputs) takeIdentity(c *identity.Config) {
	for _, one := range o {
		takes, ok := one.Settings.(output.Bearer)
		if ok && c.Enabled() {
			takes.TakeTokens()
		}
		if ok && c.Authority.Dir != "" && c.Files.Dir == "" { // with files the authority signs nothing
			takes.HaveAuthority()
		}
	}
}

// validateMutual finds settings of Envoys that need certificates, which only clients with a
// proven identity are sent.
func validateMutual(clients output.Settings, sent bool, f *findings) {
	served, ok := clients.(*xds.Config)
	if !ok || served.Envoy == nil {
		return
	}
	for _, field := range served.Envoy.NeedAuthority() {
		at := "outputs.xds.envoy." + field
		switch {
		case !sent:
			f.add(at, "needs certificates from Isthmus; set identity.authority.dir to the folder of an authority, which 'isthmus ca init' makes, or identity.files.dir to a folder with certificates")
		case !served.TLS.Enabled():
			f.add(at, "needs clients that prove their identity, which they do over TLS; set outputs.xds.tls")
		case !served.TLS.DemandsProof():
			f.add(at, "needs clients that prove their identity; set outputs.xds.tls.clientCAFile, or accept tokens by identity.jwt or identity.authority")
		}
	}
}

// Of returns the settings of a kind; nil if it is disabled.
func (o Outputs) Of(kind string) output.Settings {
	one, _ := find(o, func(o Output) string { return o.Kind }, kind)
	return one.Settings
}

package laws_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// vault is a second producer beside the one of services. It makes resources of a type of its
// own with secrets in them, of a namespace or of all. Nothing is served before its first world
// is there.
type vault struct {
	secrets   secrets
	producer  *push.Producer // of the process there is
	published bool           // by that, and by those that come
}

// secret is what a name stands for.
type secret struct{ name, namespace, text string }

// secrets is one state of a vault, by name.
type secrets map[string]secret

var _ world.World = secrets(nil)

// secretNames are those that clients ask for.
var secretNames = []string{"secret-1", "secret-2", "secret-3"}

func (w secrets) Complete() bool { return true }

func (w secrets) View(_ world.Row, c world.Client) world.View { return c.Namespace }

func (w secrets) Names(v world.View, _ world.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range secretNames {
			if _, ok := w.Find(v, 0, name); ok && !yield(name) {
				return
			}
		}
	}
}

func (w secrets) Find(v world.View, _ world.Row, name string) (world.Subject, bool) {
	s, ok := w[name]
	return s, ok && (s.namespace == "" || s.namespace == v)
}

func (s secret) Slot() any { return s.name }

func (s secret) Encode() world.Encoded { return encodeSecret(s.name, s.text) }

func encodeSecret(name, text string) world.Encoded {
	content := &corev3.TypedExtensionConfig{Name: name}
	if text != "" {
		content.TypedConfig = &anypb.Any{TypeUrl: "type.googleapis.com/google.protobuf.StringValue", Value: []byte(text)}
	}
	carried, err := anypb.New(content)
	body, failed := proto.MarshalOptions{Deterministic: true}.Marshal(carried)
	if err != nil || failed != nil {
		panic(fmt.Sprint(err, failed))
	}
	return world.Encoded{Name: name, Version: world.VersionOf(body), Body: body}
}

// lawSecret is the type of the vault. Services have none of it.
const lawSecret = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"

// Types that nobody makes anything of: one that is answered with an empty set,
// one that is not, and one that the engine has never seen.
const (
	lawWhole   = "type.googleapis.com/law.Whole"
	lawSilent  = "type.googleapis.com/law.Silent"
	lawUnknown = "type.googleapis.com/law.Unknown"
)

// join enters the vault into the engine of a process that does not run yet.
func (v *vault) join(p *play, engine *push.Engine) {
	v.producer = engine.Produce([]world.TypeSpec{{
		Name: lawSecret, Empty: func(name string) world.Encoded { return encodeSecret(name, "") },
		Debounce: [...]world.Debounce{p.script.Debounce.Endpoints.StateOfTheWorld, p.script.Debounce.Endpoints.Delta},
	}})
	engine.Admit(world.TypeSpec{Name: lawWhole, Whole: true}, 2)
	engine.Admit(world.TypeSpec{Name: lawSilent, Absent: func(string, world.Mode) world.Absence { return world.Silence }}, 2)
	if p.script.Vault || v.published {
		v.publish()
	}
}

func (v *vault) publish(changed ...world.Changed) {
	v.published = true
	v.producer.Publish(world.Update{World: v.secrets, Changed: changed})
}

// secret changes a secret, moves it to another namespace, or takes it away.
func (p *play) secret(s step) {
	v := &p.vault
	was := v.secrets[secretNames[s.Which%len(secretNames)]]
	now := secret{secretNames[s.Which%len(secretNames)], s.Report, fmt.Sprint(s.Registry)}
	next := maps.Clone(v.secrets)
	if next == nil {
		next = secrets{}
	}
	changed := world.Changed{Name: now.name, Audience: []string{was.namespace, now.namespace}, Urgent: s.Keep}
	if next[now.name] = now; s.Which >= 7 {
		delete(next, now.name)
		changed.Audience = []string{was.namespace}
		changed.Revoked = s.Keep
	}
	if was.name == "" && s.Which >= 7 {
		return
	}
	if was.name == "" {
		changed.Audience = []string{now.namespace}
	}
	if slices.Contains(changed.Audience, "") {
		changed.Audience = nil // it was or is for all
	}
	v.secrets = next
	v.publish(changed)
}

// lookAtSecrets makes sure that every client holds the secrets it has asked for.
func (p *play) lookAtSecrets() {
	for _, c := range p.clients {
		if c.away || c.holds || !c.Secrets {
			continue
		}
		wrong := ""
		c.Read(func(s *xdsclient.State) {
			if wrong = p.vault.difference(c, s); c.wholes+1 > s.Responses(lawWhole) {
				wrong += "it was not answered that there is nothing of a type that nobody produces; "
			}
			if c.Delta && s.Responses(lawSilent) > 0 || s.Responses(lawUnknown) > 0 { // a first request in the other variant is always answered
				wrong += "it was answered about a type of which nothing is known; "
			}
		})
		if wrong != "" {
			p.Fatalf("%s: %s\n%s", c.name, wrong, c.Report())
		}
	}
}

func (v *vault) difference(c *client, s *xdsclient.State) (wrong string) {
	for _, name := range secretNames {
		subject, there := v.secrets.Find(c.Namespace, 0, name)
		r, held := s.Get(lawSecret, name)
		switch {
		case there && (!held || !r.IsEncodedAs(subject.Encode().Body)):
			wrong += fmt.Sprintf("it holds another %s than %v: %v; ", name, subject, r.Content)
		case there:
		case c.Delta && held:
			wrong += fmt.Sprintf("it holds %s; ", name)
		case !c.Delta && (!held || !r.IsEncodedAs(encodeSecret(name, "").Body)): // there are no removals
			wrong += fmt.Sprintf("it has not been sent that there is no %s; ", name)
		}
	}
	return wrong
}

package istio

import (
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// Translation is the objects of a service, and the parts that could not be written.
type Translation struct {
	Objects []Object
	LeftOut []LeftOut
	// Invalid is why the service cannot be written at all; empty if it can.
	Invalid string

	after  time.Duration  // when to reconcile again, even without a change
	partly bool           // only the objects that may have changed
	draft  *compose.Draft // of a service in its form; otherwise nil
}

// LeftOut counts endpoints of a service that were not written for a reason.
type LeftOut = compose.LeftOut

// Translate returns the objects of a service, marked with an instance. exists reports
// whether an object name is in use for the service now; see [Config.ShardSize].
func (c Config) Translate(instance string, s *catalog.Service, exists func(name string) bool) Translation {
	t, _ := c.translate(instance, s, c.isWorkloads(s, false), inUse{exists: exists}, nil)
	for i := range t.Objects {
		t.Objects[i] = t.Objects[i].whole()
	}
	return t
}

func objectOf(instance string, o convert.Object, sources ...string) Object {
	return Object{
		Kind: o.Kind(), Namespace: o.Namespace, Name: o.Name, Spec: o.Spec, Labels: marks(instance),
		Annotations: map[string]string{annotationSources: strings.Join(sources, ",")},
	}
}

func scopeKey(s *catalog.Scope) Key { return Key{Sidecar, s.Record.Namespace, s.Record.Name} }

// sidecars returns the object of a scope. If several sources have a scope of that name, the
// first in merge order counts.
func (c Config) sidecars(instance string, s *catalog.Snapshot, key Key) Translation {
	for scope := range s.Scopes() {
		if scopeKey(scope) == key {
			return Translation{Objects: []Object{objectOf(instance, compose.FromScope(scope), scope.Record.Source)}}
		}
	}
	return Translation{}
}

package translate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Translation is the desired objects of a key, and the parts that cannot be written.
type Translation struct {
	Objects []object.Object
	LeftOut []LeftOut
	// Invalid is why the service cannot be written at all; empty if it can.
	Invalid string
	// Other is the object of another owner that is the reason; zero without one.
	Other object.Ref

	After  time.Duration  // when to translate again, even without a change
	Partly bool           // only the objects that may have changed
	Draft  *compose.Draft // of a service in its form; otherwise nil
	Parts  Parts          // of a service, for its next translation
}

// LeftOut counts endpoints of a service that are not written for a reason.
type LeftOut = compose.LeftOut

// InUse is the properties of existing objects that the layout of a service depends on.
type InUse struct {
	Exists func(name string) bool // of a ServiceEntry
	Ports  object.PortNames
}

// Parts is the ingredients of a service's objects at the last translation, by object. A
// change of one endpoint then costs only the object with that endpoint: the others are
// neither made nor encoded, and compared by their stored fingerprints. It is immutable.
type Parts map[object.Ref]part

type part struct {
	of    compose.Ingredients
	print object.Fingerprint
}

// Endpoints returns the number of endpoints of all parts.
func (p Parts) Endpoints() (n int) {
	for _, one := range p {
		n += one.of.Endpoints()
	}
	return n
}

// Service returns the objects of a service in one form. Objects with the ingredients of an
// earlier translation have no specification yet.
func (c Settings) Service(s *catalog.Service, workloads bool, in InUse, before Parts) Translation {
	draft := compose.DraftService(s, c.layout(workloads, in))
	t := Translation{LeftOut: draft.LeftOut, Invalid: draft.Invalid, Draft: &draft, Parts: make(Parts, len(draft.Parts))}
	t.Objects = make([]object.Object, 0, len(draft.Parts))
	for i, p := range draft.Parts {
		var o object.Object
		if i > 0 && p.Kind == object.WorkloadEntry && slices.Equal(p.Sources, draft.Parts[i-1].Sources) {
			o = t.Objects[i-1] // there may be thousands with equal marks
		} else {
			o = c.objectOfPart(s, p)
		}
		o.Kind, o.Name, o.Spec, o.Make = p.Kind, p.Name, nil, p.Spec
		known, ok := before[o.Ref()]
		if !ok || !p.MadeOf(known.of) {
			o.Spec = p.Spec()
			known = part{p.Ingredients(), object.FingerprintOfMessage(o.Spec)}
		}
		o.Print, t.Parts[o.Ref()] = known.print, known
		t.Objects = append(t.Objects, o)
	}
	return t
}

// Some returns the desired objects of a placed service among some names.
func (c Settings) Some(placement *compose.Placement, refs map[object.Ref]struct{}) []object.Object {
	names := make([]compose.PartName, 0, len(refs))
	for ref := range refs {
		names = append(names, compose.PartName{Kind: ref.Kind, Name: ref.Name})
	}
	objects := make([]object.Object, 0, len(refs))
	for _, p := range placement.Parts(names) {
		o := c.objectOfPart(placement.Service(), p)
		o.Spec = p.Spec()
		o.Print = object.FingerprintOfMessage(o.Spec)
		objects = append(objects, o)
	}
	return objects
}

// objectOfPart returns the object of a part of a service, without a specification.
func (c Settings) objectOfPart(s *catalog.Service, p compose.DraftPart) object.Object {
	o := c.objectOf(convert.Object{Namespace: p.Namespace}, p.Sources...)
	o.Annotations[object.AnnotationService] = s.Key.Host
	maps.Copy(o.Labels, p.Labels)
	if names := p.PortNames(); names != nil {
		o.Annotations[object.AnnotationPorts] = object.PortNames(names).String()
	}
	o.Kind, o.Name = p.Kind, p.Name
	return o
}

func (c Settings) objectOf(o convert.Object, sources ...string) object.Object {
	return object.Object{
		Kind: o.Kind(), Namespace: o.Namespace, Name: o.Name, Spec: o.Spec, Labels: object.Marks(c.Instance),
		Annotations: map[string]string{object.AnnotationSources: strings.Join(sources, ",")},
	}
}

// layout returns how a service is spread over objects.
func (c Settings) layout(workloads bool, in InUse) compose.Layout {
	l := compose.Layout{ShardSize: c.ShardSize, Exists: in.Exists, PortNames: in.Ports}
	if workloads {
		l.Workloads = map[string]string{object.LabelInstance: c.Instance}
	}
	return l
}

// Selector returns the selector of a service's WorkloadEntries.
func (c Settings) Selector(host string) map[string]string {
	return c.layout(true, InUse{}).Selector(host)
}

// ScopeKey returns the key of a scope.
func ScopeKey(s *catalog.Scope) object.Key {
	return object.Key{Kind: object.Sidecar, Namespace: s.Record.Namespace, Name: s.Record.Name}
}

// Scope returns the object of a scope. If several sources have a scope of that name, the
// first in merge order counts.
func (c Settings) Scope(s *catalog.Snapshot, key object.Key) Translation {
	for scope := range s.Scopes() {
		if ScopeKey(scope) == key {
			return Translation{Objects: []object.Object{c.objectOf(compose.FromScope(scope), scope.Record.Source)}}
		}
	}
	return Translation{}
}

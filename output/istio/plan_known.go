package istio

import (
	"maps"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
)

// known is the ingredients of a service's objects at the last reconciliation, by object. A
// change of one endpoint then costs only the object with that endpoint: the others are
// neither made nor encoded, and compared by their stored fingerprints. It is immutable.
type known map[Ref]knownPart

type knownPart struct {
	of    compose.Ingredients
	print fingerprint
}

// knownServices are the known ingredients of every large enough service.
type knownServices struct {
	mu  sync.Mutex
	all map[Key]known
}

func (k *knownServices) of(key Key) known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// worthKnowing is the number of endpoints from which on a service's ingredients are kept. A
// smaller service is quickly made anew.
const worthKnowing = 32

// keep replaces the known ingredients of a service.
func (k *knownServices) keep(key Key, now known) {
	endpoints := 0
	for _, part := range now {
		endpoints += part.of.Endpoints()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if endpoints < worthKnowing {
		delete(k.all, key)
		return
	}
	if k.all == nil {
		k.all = map[Key]known{}
	}
	k.all[key] = now
}

// translate returns the objects of a service. Objects with unchanged ingredients have no
// specification yet.
func (c Config) translate(instance string, s *catalog.Service, workloads bool, in inUse, before known) (Translation, known) {
	draft := compose.DraftService(s, c.layout(instance, workloads, in))
	t, now := Translation{LeftOut: draft.LeftOut, Invalid: draft.Invalid, draft: &draft}, make(known, len(draft.Parts))
	t.Objects = make([]Object, 0, len(draft.Parts))
	for i, p := range draft.Parts {
		var o Object
		if i > 0 && p.Kind == WorkloadEntry && slices.Equal(p.Sources, draft.Parts[i-1].Sources) {
			o = t.Objects[i-1] // there may be thousands with equal marks
		} else {
			o = objectOfPart(instance, s, p)
		}
		o.Kind, o.Name, o.Spec, o.make = p.Kind, p.Name, nil, p.Spec
		part, ok := before[o.Ref()]
		if !ok || !p.MadeOf(part.of) {
			o.Spec = p.Spec()
			part = knownPart{p.Ingredients(), printOf(o.Spec)}
		}
		o.print, now[o.Ref()] = part.print, part
		t.Objects = append(t.Objects, o)
	}
	return t, now
}

// objectOfPart returns the object of a part of a service, without a specification.
func objectOfPart(instance string, s *catalog.Service, p compose.DraftPart) Object {
	o := objectOf(instance, convert.Object{Namespace: p.Namespace}, p.Sources...)
	o.Annotations[annotationService] = s.Key.Host
	maps.Copy(o.Labels, p.Labels)
	if names := p.PortNames(); names != nil {
		o.Annotations[annotationPorts] = portNames(names).String()
	}
	o.Kind, o.Name = p.Kind, p.Name
	return o
}

// layout returns how a service is spread over objects.
func (c Config) layout(instance string, workloads bool, in inUse) compose.Layout {
	l := compose.Layout{ShardSize: c.ShardSize, Exists: in.exists, PortNames: in.ports}
	if workloads {
		l.Workloads = map[string]string{labelInstance: instance}
	}
	return l
}

// translate returns the objects of a service, and remembers their ingredients.
func (w *Writer) translate(key Key, s *catalog.Service, workloads bool, in inUse) Translation {
	t, now := w.config.translate(w.options.Instance, s, workloads, in, w.known.of(key))
	w.known.keep(key, now)
	return t
}

package istio

import (
	"maps"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// known is what the objects of a service were made of when it was last looked at,
// by object. A change of one endpoint then costs the object that has it: the others
// are neither made nor encoded, and compared by the fingerprints that they had. It
// is immutable.
type known map[Ref]knownPart

type knownPart struct {
	of    convert.Ingredients
	print fingerprint
}

// knownServices are those of every service that is large enough.
type knownServices struct {
	mu  sync.Mutex
	all map[Key]known
}

func (k *knownServices) of(key Key) known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// worthKnowing is how many endpoints a service has at least of which is kept what
// its objects were made of. A smaller one is quickly made anew.
const worthKnowing = 32

// keep replaces what is known of a service.
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

// translate returns the objects of a service. Those that are made of what they
// were made of before have no specification yet.
func (c Config) translate(instance string, s *catalog.Service, workloads bool, in inUse, before known) (Translation, known) {
	draft := convert.DraftService(s, c.layout(instance, workloads, in))
	t, now := Translation{LeftOut: draft.LeftOut, Invalid: draft.Invalid, draft: &draft}, make(known, len(draft.Parts))
	t.Objects = make([]Object, 0, len(draft.Parts))
	for i, p := range draft.Parts {
		var o Object
		if i > 0 && p.Kind == WorkloadEntry && slices.Equal(p.Sources, draft.Parts[i-1].Sources) {
			o = t.Objects[i-1] // there may be thousands that are marked alike
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

// objectOfPart is the object of a part of a service, without a specification.
func objectOfPart(instance string, s *catalog.Service, p convert.DraftPart) Object {
	o := objectOf(instance, convert.Object{Namespace: p.Namespace}, p.Sources...)
	o.Annotations[annotationService] = s.Key.Host
	maps.Copy(o.Labels, p.Labels)
	if names := p.PortNames(); names != nil {
		o.Annotations[annotationPorts] = portNames(names).String()
	}
	o.Kind, o.Name = p.Kind, p.Name
	return o
}

// layout is how a service is spread over objects.
func (c Config) layout(instance string, workloads bool, in inUse) convert.Layout {
	l := convert.Layout{ShardSize: c.ShardSize, Exists: in.exists, PortNames: in.ports}
	if workloads {
		l.Workloads = map[string]string{labelInstance: instance}
	}
	return l
}

// translate returns the objects of a service, and remembers what they are made of.
func (w *Writer) translate(key Key, s *catalog.Service, workloads bool, in inUse) Translation {
	t, now := w.config.translate(w.options.Instance, s, workloads, in, w.known.of(key))
	w.known.keep(key, now)
	return t
}

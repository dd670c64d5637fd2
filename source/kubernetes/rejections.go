package kubernetes

import (
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/model"
)

// The reasons of Kubernetes Events about objects that are read.
const (
	reasonRejected = "Rejected"
	reasonAccepted = "Accepted"
)

// ReportRejections implements [source.RejectionReporter]: an object that is rejected, or has no
// effect, has a Kubernetes Event, and another one once it is valid again. The objects that the configuration excludes
// are valid, and have none.
func (s *Source) ReportRejections(present, fresh []model.Rejection, stored func(model.Ref) bool) {
	name, old := s.env.Name, !s.reported
	s.reported = true
	for _, f := range fresh {
		about, is := rejectedObject(f)
		if !is {
			continue
		}
		text := "source " + name + ": "
		if f.Field != "" {
			text += f.Field + ": "
		}
		if text += f.Reason; !f.NoEffect && stored(f.Ref) {
			text += "; its last good version stays"
		}
		s.events.Warn(kubeevents.Event{Object: about, Reason: reasonRejected, Message: text, Old: old})
	}
	warned := s.events.Warned()
	if len(warned) == 0 {
		return
	}
	rejected, unread := map[kubeevents.Object]bool{}, map[part]bool{}
	for _, f := range present {
		if about, is := rejectedObject(f); is {
			rejected[about] = true
		} else if f.Ref == (model.Ref{}) {
			unread[part{f.Place, f.Namespace}] = true
		}
	}
	for _, o := range warned {
		switch {
		case rejected[o], parts(unread).has(o.Resource, o.Namespace): // an unread object is still as it was
		case stored(refOf(o)):
			s.events.Clear(kubeevents.Event{Object: o, Reason: reasonAccepted, Message: "source " + name + ": it is valid again"})
		default:
			s.events.Forget(o)
		}
	}
}

// rejectedObject returns the object that a rejection is about. There is none if a whole kind
// cannot be read, or if the configuration excludes a valid object.
func rejectedObject(f model.Rejection) (o kubeevents.Object, is bool) {
	o = kubeevents.Object{Resource: f.Place, Namespace: f.Ref.Namespace, Name: f.Ref.Name}
	if f.Outside || f.Ref.Name == "" {
		return o, false
	}
	if f.Place == services {
		name, _, _ := strings.Cut(convert.Owner(model.Record{Owner: f.Ref}).Name, ":") // a host of its own, below the Service
		o.Kind, o.Name = "Service", name
		return o, true
	}
	d, is := definitionOf(f.Place)
	o.Group, o.Kind = d.Group, d.Name
	return o, is
}

// definitionOf returns the row of a resource of Istio or SMI.
func definitionOf(resource string) (istio.Definition, bool) {
	all := istio.Definitions()
	i := slices.IndexFunc(all, func(d istio.Definition) bool { return d.Resource() == resource })
	if i < 0 {
		return istio.Definition{}, false
	}
	return all[i], true
}

// refOf returns the reference of the record that is made of an object.
func refOf(o kubeevents.Object) model.Ref {
	name := convert.Name{Namespace: o.Namespace, Name: o.Name}
	if o.Resource == services {
		return name.Ref()
	}
	d, _ := definitionOf(o.Resource)
	return model.Ref{Kind: d.RecordKind(), Key: model.Key{Namespace: name.Namespace, Name: name.Name}}
}

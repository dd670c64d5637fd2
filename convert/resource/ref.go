package resource

import (
	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

// RefMessage returns the message of a reference. Merged kinds have no source in it.
func RefMessage(r model.Ref) *api.Ref {
	m := new(api.Ref)
	setRef(m, r)
	return m
}

// RefOf returns the reference of a message. Merged kinds have the source [model.MergedSource],
// whatever source the message has.
func RefOf(m *api.Ref) model.Ref {
	kind := model.Kind(m.GetKind())
	key := model.Key{Source: m.GetSource(), Namespace: m.GetNamespace(), Name: m.GetName()}
	if merged(kind) {
		key.Source = model.MergedSource
	}
	return model.Ref{Kind: kind, Key: key}
}

func setRef(m *api.Ref, r model.Ref) {
	m.Kind, m.Namespace, m.Name = text(r.Kind), text(r.Namespace), text(r.Name)
	if !merged(r.Kind) {
		m.Source = text(r.Source)
	}
}

func merged(kind model.Kind) bool {
	return kind == model.KindMergedService || kind == model.KindMergedEndpoint
}

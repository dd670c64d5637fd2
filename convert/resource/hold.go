package resource

import (
	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

func hold(h *model.Hold) *api.Hold {
	m := &api.Hold{
		Reason: text(h.Reason), Since: timestamp(h.Since), Lost: h.Lost, Parts: h.Parts, Everything: h.Everything,
		Items: list(h.Items, holdItem),
	}
	if h.Cause != (model.Ref{}) {
		m.Cause = RefMessage(h.Cause)
	}
	return m
}

func holdItem(i model.HoldItem) *api.HoldItem {
	return &api.HoldItem{Kind: text(i.Kind), Namespace: text(i.Namespace), Name: text(i.Name), Extent: text(i.Extent)}
}

func holdOf(r *reader, m *api.Hold) model.Hold {
	items := make([]model.HoldItem, len(m.GetItems()))
	for i, item := range m.GetItems() {
		items[i] = model.HoldItem{
			Kind: model.Kind(item.GetKind()), Namespace: item.GetNamespace(), Name: item.GetName(), Extent: model.Extent(item.GetExtent()),
		}
	}
	return model.Hold{
		Cause: r.ref("hold.cause", m.GetCause()), Reason: m.GetReason(), Since: r.time("hold.since", m.GetSince()),
		Lost: m.GetLost(), Parts: m.GetParts(), Everything: m.GetEverything(), Items: model.ListOf(items...),
	}
}

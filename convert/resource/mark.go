package resource

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

func sourceMark(s *model.SourceMark) *api.SourceMark {
	m := &api.SourceMark{HoldUntil: timestamp(s.HoldUntil), Departure: departure(&s.Departure), StaleSince: timestamp(s.StaleSince)}
	for j := range s.Judgements.All() {
		m.Judgements = append(m.Judgements, judgement(&j))
	}
	return m
}

func sourceMarkOf(r *reader, m *api.SourceMark) model.SourceMark {
	judgements := make([]model.Judgement, len(m.GetJudgements()))
	for i, j := range m.GetJudgements() {
		judgements[i] = judgementOf(r, fmt.Sprintf("source_mark.judgements[%d]", i), j)
	}
	return model.SourceMark{
		HoldUntil:  r.time("source_mark.hold_until", m.GetHoldUntil()),
		StaleSince: r.time("source_mark.stale_since", m.GetStaleSince()),
		Departure:  departureOf(r, "source_mark.departure", m.GetDeparture()),
		Judgements: model.JudgementsOf(judgements...),
	}
}

// departure returns nil for a source that does not depart.
func departure(d *model.Departure) *api.Departure {
	if d.Equal(model.Departure{}) {
		return nil
	}
	m := &api.Departure{Successors: texts(d.Successors), Since: timestamp(d.Since), Share: d.Share, Min: d.Min}
	if d.For != 0 {
		m.ConfirmedAfter = durationpb.New(d.For)
	}
	return m
}

func departureOf(r *reader, field string, m *api.Departure) model.Departure {
	share := m.GetShare()
	if !(share >= 0 && share <= 1) || math.Signbit(share) {
		r.fail(field+".share", "is %v; it must be from 0 to 1", share)
	}
	return model.Departure{
		Successors: model.ListOf(m.GetSuccessors()...), Since: r.time(field+".since", m.GetSince()),
		Share: share, Min: m.GetMin(), For: r.duration(field+".confirmed_after", m.GetConfirmedAfter()),
	}
}

func judgement(j *model.Judgement) *api.Judgement {
	m := &api.Judgement{Baseline: text(j.Baseline), With: texts(model.ListOf(j.With...))}
	for _, h := range j.Held {
		m.Held = append(m.Held, heldDrop(&h))
	}
	return m
}

func judgementOf(r *reader, field string, m *api.Judgement) model.Judgement {
	j := model.Judgement{Baseline: m.GetBaseline(), With: slices.Clone(m.GetWith())}
	for i, h := range m.GetHeld() {
		drop := heldDropOf(h)
		drop.Since = r.time(fmt.Sprintf("%s.held[%d].since", field, i), h.GetSince())
		j.Held = append(j.Held, drop)
	}
	return j
}

func heldDrop(d *model.HeldDrop) *api.HeldDrop {
	m := &api.HeldDrop{Reason: text(d.Reason), Since: timestamp(d.Since), Lasting: d.Lasting}
	for _, i := range d.Items {
		m.Items = append(m.Items, &api.HeldItem{
			Kind: text(i.Kind), Namespace: text(i.Namespace), Name: text(i.Name), Whole: i.Whole, Endpoints: slices.Clone(i.Endpoints),
		})
	}
	return m
}

// heldDropOf leaves the time to its caller, who knows the field.
func heldDropOf(m *api.HeldDrop) model.HeldDrop {
	d := model.HeldDrop{Reason: m.GetReason(), Lasting: m.GetLasting()}
	for _, i := range m.GetItems() {
		d.Items = append(d.Items, model.HeldItem{
			Kind: model.Kind(i.GetKind()), Namespace: i.GetNamespace(), Name: i.GetName(), Whole: i.GetWhole(), Endpoints: slices.Clone(i.GetEndpoints()),
		})
	}
	return d
}

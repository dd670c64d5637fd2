package resource

import (
	"fmt"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

// envelope is the parts of a message that nearly every record has. A single allocation makes
// them all.
type envelope struct {
	record api.Record
	ref    api.Ref
	owner  api.Ref
	uid    model.UID
}

// Message returns the message of a record. Its content is unset if the specification does not
// fit the kind, which no stored record does.
func Message(r *model.Record) *api.Record {
	e := &envelope{uid: r.UID}
	m := &e.record
	setRef(&e.ref, r.Ref)
	m.Ref, m.Uid, m.Revision, m.Generation = &e.ref, e.uid[:], r.Revision, r.Generation
	if r.Owner != (model.Ref{}) {
		setRef(&e.owner, r.Owner)
		m.Owner = &e.owner
	}
	m.Path, m.Place = names(r.Path), text(r.Place)
	if r.Status.Stale != "" {
		m.Stale, m.StaleSince = text(r.Status.Stale), timestamp(r.Status.Since)
	}
	if r.Spec != nil && r.Kind.Fits(r.Spec) {
		setContent(m, r.Spec)
	}
	return m
}

func setContent(m *api.Record, spec model.Spec) {
	switch s := spec.(type) {
	case model.Endpoint:
		block := endpoint(&s)
		block.content.Endpoint = &block.endpoint
		m.Content = &block.content
	case model.MergedEndpoint:
		m.Content = &api.Record_MergedEndpoint{MergedEndpoint: mergedEndpoint(&s)}
	case model.Service:
		m.Content = &api.Record_Service{Service: service(&s)}
	case model.MergedService:
		m.Content = &api.Record_MergedService{MergedService: mergedService(&s)}
	case model.Workload:
		m.Content = &api.Record_Workload{Workload: workload(&s)}
	case model.Scope:
		m.Content = &api.Record_Scope{Scope: scope(&s)}
	case model.Consumption:
		m.Content = &api.Record_Consumption{Consumption: consumption(&s)}
	case model.Split:
		m.Content = &api.Record_Split{Split: split(&s)}
	case model.SourceMark:
		m.Content = &api.Record_SourceMark{SourceMark: sourceMark(&s)}
	case model.Hold:
		m.Content = &api.Record_Hold{Hold: hold(&s)}
	case model.Opaque:
		m.Content = &api.Record_Opaque{Opaque: opaque(&s)}
	}
}

// Record returns the record of a message. An error names the field that is wrong, and the
// remedy.
func Record(m *api.Record) (model.Record, error) {
	var read reader
	if m.GetRef().GetKind() == "" {
		read.fail("ref.kind", "must be set")
	}
	r := model.Record{
		Ref: read.ref("ref", m.GetRef()), Revision: m.GetRevision(), Generation: m.GetGeneration(),
		Owner: read.ref("owner", m.GetOwner()), Path: read.path("path", m.GetPath()), Place: m.GetPlace(),
		Status: model.Status{Stale: m.GetStale(), Since: read.time("stale_since", m.GetStaleSince())},
	}
	if n := copy(r.UID[:], m.GetUid()); n < len(r.UID) || n < len(m.GetUid()) {
		read.fail("uid", "has %d bytes; it must have %d", len(m.GetUid()), len(r.UID))
	}
	if r.Status.Stale == "" && !r.Status.Since.IsZero() {
		read.fail("stale_since", "is set without stale; set both or none")
	}
	r.Spec = specOf(&read, m)
	if r.Spec == nil {
		read.fail("content", "must be set")
	} else if !r.Kind.Fits(r.Spec) {
		read.fail("content", "does not fit the kind %q; set the field of the kind, or opaque for a kind that Isthmus does not understand", r.Kind)
	}
	if read.err != nil {
		return model.Record{}, fmt.Errorf("record %s: %w", r.Ref, read.err)
	}
	return r, nil
}

func specOf(r *reader, m *api.Record) model.Spec {
	switch c := m.GetContent().(type) {
	case *api.Record_Endpoint:
		return endpointOf(c.Endpoint)
	case *api.Record_MergedEndpoint:
		return mergedEndpointOf(c.MergedEndpoint)
	case *api.Record_Service:
		return serviceOf(r, "service", c.Service)
	case *api.Record_MergedService:
		return mergedServiceOf(r, c.MergedService)
	case *api.Record_Workload:
		return workloadOf(r, c.Workload)
	case *api.Record_Scope:
		return scopeOf(r, c.Scope)
	case *api.Record_Consumption:
		return consumptionOf(c.Consumption)
	case *api.Record_Split:
		return splitOf(r, c.Split)
	case *api.Record_SourceMark:
		return sourceMarkOf(r, c.SourceMark)
	case *api.Record_Hold:
		return holdOf(r, c.Hold)
	case *api.Record_Opaque:
		return opaqueOf(r, c.Opaque)
	}
	return nil
}

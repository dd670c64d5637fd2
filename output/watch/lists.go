package watch

import (
	"context"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

// mostPage bounds the encoded records of a page.
const mostPage = 1 << 20

// get serves Get.
func (s *Server) get(wire *streams.Stream) error {
	return answer(s, wire, func(ctx context.Context, m *resourcev1alpha1.GetRequest) (proto.Message, error) {
		r := rightsOf(wire.Who)
		ref, err := refOf("ref", m.GetRef())
		if err != nil {
			return nil, err
		}
		if err := s.admit(ctx, wire.Who, model.Filter{Kind: ref.Kind}); err != nil {
			return nil, err
		}
		from := s.storeOf(ref.Kind)
		at := from.At() // the answer is not older
		if rec, ok := from.Get(ref); ok && r.sees(&rec) {
			return &resourcev1alpha1.GetResponse{Record: r.message(&rec), At: r.moment(at)}, nil
		}
		return nil, grpcstatus.Errorf(codes.NotFound, "there is no record %s", ref)
	})
}

// list serves List.
func (s *Server) list(wire *streams.Stream) error {
	return answer(s, wire, func(ctx context.Context, m *resourcev1alpha1.ListRequest) (proto.Message, error) {
		f, err := filterOf(m.GetFilter())
		if err != nil {
			return nil, err
		}
		p, err := s.page(ctx, wire.Who, selection{Filter: f}, m)
		if err != nil {
			return nil, err
		}
		return &resourcev1alpha1.ListResponse{Records: p.records, NextPageToken: p.next, At: p.at}, nil
	})
}

// listByOwner serves ListByOwner. Owned records have the name of their owner before their own,
// and its source and namespace.
func (s *Server) listByOwner(wire *streams.Stream) error {
	return answer(s, wire, func(ctx context.Context, m *resourcev1alpha1.ListByOwnerRequest) (proto.Message, error) {
		owner, err := refOf("owner", m.GetOwner())
		if err != nil {
			return nil, err
		}
		owned := selection{model.Filter{Source: owner.Source, Namespace: owner.Namespace, Prefix: owner.Name + "/"}, owner}
		if isMerged(owner.Kind) {
			owned.Kind = model.KindMergedEndpoint
		}
		p, err := s.page(ctx, wire.Who, owned, m)
		if err != nil {
			return nil, err
		}
		return &resourcev1alpha1.ListByOwnerResponse{Records: p.records, NextPageToken: p.next, At: p.at}, nil
	})
}

// pageRequest is a request for a page.
type pageRequest interface {
	GetPageBytes() uint32
	GetPageToken() string
}

// selection is the records of a list.
type selection struct {
	model.Filter
	owner model.Ref // zero selects records of any owner
}

func (s selection) selects(rec *model.Record) bool {
	return s.owner == (model.Ref{}) || rec.Owner == s.owner
}

// page is one page of a list.
type page struct {
	records []*resourcev1alpha1.Record
	next    string
	at      *resourcev1alpha1.Moment
}

// page reads a page of selected records.
func (s *Server) page(ctx context.Context, who streams.Identity, f selection, m pageRequest) (p page, err error) {
	r := rightsOf(who)
	after, err := pageStart(m.GetPageToken())
	if err != nil {
		return p, err
	}
	if err := s.admit(ctx, who, f.Filter); err != nil {
		return p, err
	}
	most := int(m.GetPageBytes())
	if most == 0 || most > mostPage {
		most = mostPage
	}
	all, at := s.storeOf(f.Kind).ListAfter(f.Filter, after)
	p.at = r.moment(at)
	size := 0
	var last model.Ref
	for rec := range all {
		if !f.selects(&rec) || !r.sees(&rec) {
			continue
		}
		message := r.message(&rec)
		if size += proto.Size(message); len(p.records) > 0 && size > most {
			p.next = pageToken(last)
			return p, nil
		}
		p.records, last = append(p.records, message), rec.Ref
	}
	return p, nil
}

// admit waits until the records that a filter selects are known, if the reader may read them.
func (s *Server) admit(ctx context.Context, who streams.Identity, f model.Filter) error {
	if err := s.may(who, f.Kind); err != nil {
		return err
	}
	return s.await(ctx, f, nil)
}

// answer serves a call with one request and one response.
func answer[M any, P interface {
	*M
	proto.Message
}](s *Server, wire *streams.Stream, respond func(ctx context.Context, m P) (proto.Message, error)) error {
	m, err := streams.First(wire, decoded[M, P])
	if err != nil {
		return err
	}
	return wire.Serve(s.limits.Taken, func(ctx context.Context, to *streams.Sender) error {
		response, err := respond(ctx, m)
		if err != nil {
			return err
		}
		return to.Send(response)
	})
}

package watch

import (
	"encoding/base64"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
)

// decoded decodes a request.
func decoded[M any, P interface {
	*M
	proto.Message
}](text []byte) (P, error) {
	m := P(new(M))
	if err := proto.Unmarshal(text, m); err != nil {
		return nil, grpcstatus.Errorf(codes.InvalidArgument, "the request is no %s: %v", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return m, nil
}

// filterOf returns the filter of a request.
func filterOf(m *resourcev1alpha1.Filter) (model.Filter, error) {
	f := model.Filter{Kind: model.Kind(m.GetKind()), Source: m.GetSource(), Namespace: m.GetNamespace(), Prefix: m.GetNamePrefix()}
	if !isMerged(f.Kind) {
		return f, nil
	}
	if f.Source != "" {
		return f, grpcstatus.Errorf(codes.InvalidArgument, "filter.source: %q: records of kind %s are of no source; leave it empty", f.Source, f.Kind)
	}
	f.Source = model.MergedSource
	return f, nil
}

// refOf returns the reference of a request; field is its name there.
func refOf(field string, m *resourcev1alpha1.Ref) (model.Ref, error) {
	ref := resource.RefOf(m)
	for _, part := range []struct{ name, text string }{{"kind", string(ref.Kind)}, {"source", ref.Source}, {"name", ref.Name}} {
		if part.text == "" {
			return ref, grpcstatus.Errorf(codes.InvalidArgument, "%s.%s: missing; List with a filter shows the names of records", field, part.name)
		}
	}
	return ref, nil
}

// startOf returns the moments of a request.
func startOf(r rights, m *resourcev1alpha1.WatchListRequest) (model.Start, error) {
	start := model.Start{Held: momentOf(m.GetHeld()), NotOlderThan: momentOf(m.GetNotOlderThan())}
	if !r.all && start != (model.Start{}) {
		return start, grpcstatus.Error(codes.InvalidArgument, "held, not_older_than: a reader outside the root namespace is sent no moments; leave both empty")
	}
	return start, nil
}

func momentOf(m *resourcev1alpha1.Moment) model.At {
	return model.At{Epoch: m.GetEpoch(), Revision: m.GetRevision()}
}

// pageToken names the last record of a page.
func pageToken(last model.Ref) string {
	text, err := proto.Marshal(resource.RefMessage(last))
	if err != nil { // names that are no UTF-8 text; the page is then the last
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func pageStart(token string) (model.Ref, error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var m resourcev1alpha1.Ref
	if err == nil {
		err = proto.Unmarshal(text, &m)
	}
	if err != nil {
		return model.Ref{}, grpcstatus.Errorf(codes.InvalidArgument, "page_token: %q is not the next_page_token of a page", token)
	}
	if token == "" {
		return model.Ref{}, nil
	}
	return resource.RefOf(&m), nil
}

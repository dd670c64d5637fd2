package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// overdue goes on without the missing collections. If they may contain the services,
// the run fails.
func (s *session) overdue(ctx context.Context) error {
	lacking := s.holding.collections.lacking()
	if len(lacking) > 0 || len(s.holding.collections.unanswered()) == len(s.holding.collections) {
		return s.explainLack(lacking)
	}
	return s.list(ctx)
}

// unanswered names the collections that have not come on this stream.
func (cs collections) unanswered() (names []string) {
	for _, c := range cs {
		if !c.answered {
			names = append(names, c.name)
		}
	}
	return names
}

// keepUnanswered keeps the stored records of unanswered collections. It also keeps records of
// collections no longer requested, since the peer seems to lack them. Their state is unknown.
func (s *session) keepUnanswered(l *source.Listing) {
	waits := append(s.holding.collections.unanswered(), s.unknown...)
	if len(waits) == 0 || s.env.Stored == nil {
		return
	}
	listed := map[model.Ref]bool{}
	for _, o := range l.Objects {
		listed[o.Record.Ref] = true
	}
	for _, f := range l.Rejected {
		listed[f.Ref] = true
	}
	mirror.Keep(l, s.env.Stored(), func(rec model.Record) (source.Rejection, bool) {
		ref, collection := rec.Ref, collectionOf(rec.Place)
		ref.Source = ""
		if listed[ref] || !slices.Contains(waits, collection) {
			return source.Rejection{}, false
		}
		return source.Rejection{
			Object: rec.Place, Where: collection, Reason: s.holding.collections.notKnown(collection) + ": what is stored of it is kept",
		}, true
	})
}

// notKnown returns why the state of a collection is unknown.
func (cs collections) notKnown(name string) string {
	if c := cs.find(name); c != nil && c.refused {
		return "this collection was NACKed: " + c.nacked.reason
	}
	return "the peer has not sent this collection since it was connected"
}

// explain turns the end of a stream into an error, and adapts the next run. A peer
// that does not know a collection ends the stream for it.
func (s *session) explain(err error) error {
	if s.stuck.Load() {
		return fmt.Errorf("%s has read no request for %s", s.peer(), s.config.pace.stuck)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has ended the stream", s.peer())
	}
	st, ok := grpcstatus.FromError(err)
	if !ok {
		return fmt.Errorf("%s: %w", s.peer(), err)
	}
	text := fmt.Errorf("%s has ended the stream: %s: %s", s.peer(), st.Code(), cut(st.Message()))
	switch st.Code() {
	case codes.ResourceExhausted:
		s.resume = false // in case the request was too large
		if strings.Contains(st.Message(), "larger than max") {
			return fmt.Errorf("%w; an answer may have %d bytes here: give Isthmus more memory (GOMEMLIMIT), or have the source send less at once", text, s.config.largest(s.env.Memory))
		}
	case codes.InvalidArgument:
		return s.forget(text, st.Message())
	case codes.Unimplemented:
		return fmt.Errorf("%w; it does not serve %s", text, mcp.ResourceSource_EstablishResourceStream_FullMethodName)
	default:
	}
	return text
}

// forget stops requesting a collection for which the peer ends the stream. Exceptions
// are a configured collection, one that the peer has sent before, and the only one of
// services.
func (s *session) forget(text error, message string) error {
	i := slices.IndexFunc(s.holding.collections, func(c *collection) bool { return strings.Contains(message, c.name) })
	if i < 0 {
		return text
	}
	name := s.holding.collections[i].name
	if len(s.config.Collections) > 0 || s.holding.collections.isOnly(i) || s.Has(name) {
		return fmt.Errorf("%w; if it has no collection %s, name those that it has in collections", text, name)
	}
	s.unknown = append(s.unknown, name)
	return fmt.Errorf("%w; it is not asked for %s any more", text, name)
}

// isOnly reports whether a collection is the only one, or the only one of services.
func (cs collections) isOnly(at int) bool {
	for i, c := range cs {
		if i != at && (c.makesServices() || !cs[at].makesServices()) {
			return false
		}
	}
	return true
}

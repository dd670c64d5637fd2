package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// patience returns the wait for the next step. The wait is shorter once the remaining
// collections are optional.
func (s *session) patience() time.Duration {
	if s.progress.lacking > 0 || s.progress.unanswered == len(s.holding.collections) {
		return s.pace.first
	}
	return s.pace.rest
}

// overdue goes on without the missing collections. If they may contain the services,
// the run fails.
func (s *session) overdue(ctx context.Context) error {
	cs := s.holding.collections
	if len(cs.lacking()) > 0 || len(cs.unanswered()) == len(cs) {
		return cs.explainLack(s.peer, s.pace.first)
	}
	return s.list(ctx)
}

// keepUnanswered keeps the stored records of unanswered collections. It also keeps records of
// collections no longer requested, since the peer seems to lack them. Their state is unknown.
func (s *session) keepUnanswered(l *model.Listing) {
	waits := append(s.holding.collections.unanswered(), s.holding.unknown...)
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
	mirror.Keep(l, s.env.Stored(), func(rec model.Record) (model.Rejection, bool) {
		ref, collection := rec.Ref, collectionOf(rec.Place)
		ref.Source = ""
		if listed[ref] || !slices.Contains(waits, collection) {
			return model.Rejection{}, false
		}
		return model.Rejection{
			Object: rec.Place, Where: collection, Reason: s.holding.collections.notKnown(collection) + ": what is stored of it is kept",
		}, true
	})
}

// explain turns the end of a stream into an error, and adapts the next run. A peer
// that does not know a collection ends the stream for it.
func (s *session) explain(err error) error {
	if s.stuck.Load() {
		return fmt.Errorf("%s has read no request for %s", s.peer, s.pace.stuck)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has ended the stream", s.peer)
	}
	st, ok := grpcstatus.FromError(err)
	if !ok {
		return fmt.Errorf("%s: %w", s.peer, err)
	}
	text := fmt.Errorf("%s has ended the stream: %s: %s", s.peer, st.Code(), cut(st.Message()))
	switch st.Code() {
	case codes.ResourceExhausted:
		s.holding.noResume = true // in case the request was too large
		if strings.Contains(st.Message(), "larger than max") {
			return fmt.Errorf("%w; an answer may have %d bytes here: give Isthmus more memory (GOMEMLIMIT), or have the source send less at once", text, s.largest)
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
	cs := s.holding.collections
	i := slices.IndexFunc(cs, func(c *collection) bool { return strings.Contains(message, c.name) })
	if i < 0 {
		return text
	}
	c := cs[i]
	if s.chosen || cs.isOnly(i) || s.Has(c.name) {
		return fmt.Errorf("%w; if it does not serve collection %s, list the served ones in collections", text, c.name)
	}
	s.holding.drop(c)
	return fmt.Errorf("%w; %s is not requested any more", text, c.name)
}

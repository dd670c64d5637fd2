package watch

import (
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/model"
)

// message is a WatchListResponse in the making, encoded.
type message struct{ text []byte }

// fieldEvents is the field of a WatchListResponse with its events.
const fieldEvents = 1

// add adds an encoded event.
func (m *message) add(event []byte) {
	m.text = protowire.AppendTag(m.text, fieldEvents, protowire.BytesType)
	m.text = protowire.AppendBytes(m.text, event)
}

func (m *message) empty() bool { return len(m.text) == 0 }

// finish returns the message, with the fields of rest beside its events.
func (m *message) finish(rest *resourcev1alpha1.WatchListResponse) *streams.Message {
	return streams.Encoded(append(m.text, encodedOf(rest)...))
}

// partial returns the fields of a message that the next one continues.
func partial() *resourcev1alpha1.WatchListResponse {
	return &resourcev1alpha1.WatchListResponse{Partial: true}
}

// encodedOf encodes a message. Texts that are no UTF-8 are the only reason to fail, and the
// conversion of records leaves none.
func encodedOf(m proto.Message) []byte {
	text, err := proto.Marshal(m)
	if err != nil {
		panic(err) // it ends the stream
	}
	return text
}

// timestamp returns a time; nil if it is unknown.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func eventBytes(e *resourcev1alpha1.Event) []byte { return encodedOf(e) }

func upsertEvent(r *resourcev1alpha1.Record) *resourcev1alpha1.Event {
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Upsert{Upsert: &resourcev1alpha1.Upsert{Record: r}}}
}

func deleteEvent(r *resourcev1alpha1.Record) *resourcev1alpha1.Event {
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Delete{Delete: &resourcev1alpha1.Delete{Record: r}}}
}

// message returns a record as a reader may see it.
func (r rights) message(rec *model.Record) *resourcev1alpha1.Record {
	m := resource.Message(rec)
	if !r.all {
		m.Revision, m.Generation = 0, 0
	}
	return m
}

// moment returns a moment as a reader may see it; nil if it may not.
func (r rights) moment(at model.At) *resourcev1alpha1.Moment {
	if !r.all {
		return nil
	}
	return &resourcev1alpha1.Moment{Epoch: at.Epoch, Revision: at.Revision}
}

// state returns the state of a source as a reader may see it.
func (r rights) state(s sourceState) *resourcev1alpha1.SourceState {
	m := &resourcev1alpha1.SourceState{Name: s.Name, Primed: s.primed}
	if r.all {
		m.State, m.Since, m.Reason = string(s.State), timestamp(s.Since), strings.ToValidUTF8(s.Reason, "\uFFFD")
	}
	return m
}

// sameState reports whether two states are equal to a reader.
func (r rights) sameState(s, o sourceState) bool {
	if r.all {
		return s.equal(o)
	}
	return s.Name == o.Name && s.primed == o.primed
}

func (r rights) stateEvent(s sourceState, removed bool) *resourcev1alpha1.Event {
	m := r.state(s)
	m.Removed = removed
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Source{Source: m}}
}

func (r rights) endEvent(sources []sourceState) *resourcev1alpha1.Event {
	m := &resourcev1alpha1.EndOfSnapshot{}
	for _, s := range sources {
		m.Sources = append(m.Sources, r.state(s))
	}
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_EndOfSnapshot{EndOfSnapshot: m}}
}

// encoder keeps the last encoded events of commits, so that each is encoded once for all
// readers.
type encoder struct {
	mu    sync.Mutex // guards the rest
	kept  map[eventKey][]byte
	bytes int
}

// eventKey identifies an event of a commit, as readers with equal rights see it.
type eventKey struct {
	ref      model.Ref
	revision uint64
	all      bool
	deleted  bool
}

// mostKept bounds the bytes of kept events.
const mostKept = 8 << 20

func newEncoder() *encoder { return &encoder{kept: map[eventKey][]byte{}} }

// encode returns the bytes of an event. Readers that miss it at the same time may each encode it.
func (e *encoder) encode(key eventKey, event func() *resourcev1alpha1.Event) []byte {
	e.mu.Lock()
	text, ok := e.kept[key]
	e.mu.Unlock()
	if ok {
		return text
	}
	text = eventBytes(event())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes += len(text); e.bytes > mostKept {
		clear(e.kept)
		e.bytes = len(text)
	}
	e.kept[key] = text
	return text
}

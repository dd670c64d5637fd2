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

// addUpsert adds the event of a record, without an encoding of its own as add needs: a snapshot
// has hundreds of thousands. It writes the record to buffer first, and returns that for reuse.
func (m *message) addUpsert(rec *model.Record, buffer []byte) []byte {
	buffer = recordBytes(buffer[:0], rec)
	upsert := fieldBytes(len(buffer))
	event := fieldBytes(upsert)
	for _, size := range [...]int{event, upsert, len(buffer)} {
		m.text = protowire.AppendTag(m.text, 1, protowire.BytesType) // events, upsert and record alike
		m.text = protowire.AppendVarint(m.text, uint64(size))        //nolint:gosec // a length is not negative
	}
	m.text = append(m.text, buffer...)
	return buffer
}

// fieldBytes returns the size of a field with so many bytes, of a number below 16.
func fieldBytes(content int) int { return 1 + protowire.SizeBytes(content) }

// recordBytes appends an encoded record. It fails as little as encodedOf.
func recordBytes(b []byte, rec *model.Record) []byte {
	b, err := resource.Append(b, rec)
	if err != nil {
		panic(err) // it ends the stream
	}
	return b
}

func (m *message) empty() bool { return len(m.text) == 0 }

// finish returns the encoded message, with the fields of rest beside its events.
func (m *message) finish(rest *resourcev1alpha1.WatchListResponse) []byte {
	return append(m.text, encodedOf(rest)...)
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

// record returns a record as a reader may see it.
func (r rights) record(rec model.Record) model.Record {
	if !r.all {
		rec.Revision, rec.Generation = 0, 0
	}
	return rec
}

// message returns the message of a record as a reader may see it.
func (r rights) message(rec *model.Record) *resourcev1alpha1.Record {
	visible := r.record(*rec)
	return resource.Message(&visible)
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

func (r rights) resetEvent(e model.Reset) *resourcev1alpha1.Event {
	if !r.all {
		e.Reason = "the reader fell behind" // the store's reason counts hidden commits
	}
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Reset_{Reset_: &resourcev1alpha1.Reset{Reason: e.Reason}}}
}

func (r rights) endEvent(sources []sourceState) *resourcev1alpha1.Event {
	m := &resourcev1alpha1.EndOfSnapshot{}
	for _, s := range sources {
		m.Sources = append(m.Sources, r.state(s))
	}
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_EndOfSnapshot{EndOfSnapshot: m}}
}

// part is one message of a commit.
type part struct {
	text []byte // nil if the reader sees none of the events
	end  int    // the index of the event after it
}

// encoder keeps the last parts of commits, so that each is encoded once for all readers with the
// same filter and rights.
type encoder struct {
	mu    sync.Mutex // guards the rest
	kept  map[partKey]part
	bytes int
}

// partKey identifies a part: the same readers are sent the same commit in the same parts.
type partKey struct {
	rights rights
	filter model.Filter
	at     model.At
	begin  int // the index of its first event
}

// mostKept bounds the bytes of kept parts.
const mostKept = 8 << 20

func newEncoder() *encoder { return &encoder{kept: map[partKey]part{}} }

// encode returns a part. Readers that miss it at the same time may each encode it.
func (e *encoder) encode(key partKey, encoded func() part) part {
	e.mu.Lock()
	p, ok := e.kept[key]
	e.mu.Unlock()
	if ok {
		return p
	}
	p = encoded()
	e.mu.Lock()
	defer e.mu.Unlock()
	const entry = 256 // estimated, of a part beside its message
	if e.bytes += cap(p.text) + entry; e.bytes > mostKept {
		clear(e.kept)
		e.bytes = cap(p.text) + entry
	}
	e.kept[key] = p
	return p
}

package resource

import (
	"encoding/binary"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/model"
)

// Append appends the encoding of [Message]. There are hundreds of thousands of endpoints, so it
// writes them field by field and without a message.
func Append(b []byte, r *model.Record) ([]byte, error) {
	e := encoding{text: b}
	if e.record(r) && !e.invalid {
		return e.text, nil
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, Message(r))
}

// encoding is a message in the making. The numbers in its methods are those of the fields in
// resource.proto; fields are in the order of their numbers.
type encoding struct {
	text    []byte
	invalid bool // it has a text that is not UTF-8
}

// record adds a record. It reports false if only its message can be encoded.
func (e *encoding) record(r *model.Record) bool {
	switch s := r.Spec.(type) {
	case model.Endpoint:
		if r.Kind != model.KindEndpoint {
			return false
		}
		e.envelope(r)
		content := e.open(21)
		e.endpoint(&s)
		e.close(content)
		return true
	case model.MergedEndpoint:
		if r.Kind != model.KindMergedEndpoint {
			return false
		}
		e.envelope(r)
		content := e.open(41)
		e.mergedEndpoint(&s)
		e.close(content)
		return true
	}
	return false
}

// envelope adds the fields of a record beside its content.
func (e *encoding) envelope(r *model.Record) {
	ref := e.open(1)
	e.ref(r.Ref)
	e.close(ref)
	e.text = protowire.AppendTag(e.text, 2, protowire.BytesType)
	e.text = protowire.AppendBytes(e.text, r.UID[:])
	e.number(3, r.Revision)
	e.number(4, r.Generation)
	if r.Owner != (model.Ref{}) {
		owner := e.open(5)
		e.ref(r.Owner)
		e.close(owner)
	}
	if r.Path != "" {
		for name := range r.Path.Names() {
			e.item(6, name)
		}
	}
	e.string(7, r.Place)
	if r.Status.Stale != "" {
		e.string(8, r.Status.Stale)
		e.time(9, r.Status.Since)
	}
}

func (e *encoding) ref(r model.Ref) {
	e.string(1, string(r.Kind))
	if !merged(r.Kind) {
		e.string(2, r.Source)
	}
	e.string(3, r.Namespace)
	e.string(4, r.Name)
}

func (e *encoding) endpoint(p *model.Endpoint) {
	e.string(1, p.Address)
	for address := range p.Also.All() {
		e.item(2, address)
	}
	for name, number := range p.Ports.All() {
		port := e.open(3)
		e.item(1, name)
		e.text = protowire.AppendTag(e.text, 2, protowire.VarintType)
		e.text = protowire.AppendVarint(e.text, uint64(number))
		e.close(port)
	}
	for name, value := range p.Labels.All() {
		label := e.open(4)
		e.item(1, name)
		e.item(2, value)
		e.close(label)
	}
	e.string(5, p.Network)
	if l := p.Locality; l != (model.Locality{}) {
		locality := e.open(6)
		e.string(1, l.Region)
		e.string(2, l.Zone)
		e.string(3, l.SubZone)
		e.close(locality)
	}
	e.string(7, p.Node)
	e.number(8, uint64(p.Weight))
	if p.Exact {
		e.number(9, 1)
	}
	e.string(10, p.ServiceAccount)
	e.string(11, string(p.Health))
	e.number(12, uint64(p.Registered)) //nolint:gosec // as protobuf writes it
}

func (e *encoding) mergedEndpoint(m *model.MergedEndpoint) {
	e.number(1, uint64(m.ServicePort))
	e.number(2, uint64(m.Port))
	endpoint := e.open(3)
	e.endpoint(&m.Endpoint)
	e.close(endpoint)
	e.string(4, m.Source)
}

// string adds a text unless it is empty.
func (e *encoding) string(field protowire.Number, s string) {
	if s != "" {
		e.item(field, s)
	}
}

// item adds a text of a list or map.
func (e *encoding) item(field protowire.Number, s string) {
	e.invalid = e.invalid || !utf8.ValidString(s)
	e.text = protowire.AppendTag(e.text, field, protowire.BytesType)
	e.text = protowire.AppendString(e.text, s)
}

// number adds a number unless it is zero.
func (e *encoding) number(field protowire.Number, n uint64) {
	if n != 0 {
		e.text = protowire.AppendTag(e.text, field, protowire.VarintType)
		e.text = protowire.AppendVarint(e.text, n)
	}
}

// time adds a time unless it is unset.
func (e *encoding) time(field protowire.Number, t time.Time) {
	if t.IsZero() {
		return
	}
	at := e.open(field)
	e.number(1, uint64(t.Unix()))       //nolint:gosec // a negative number has the same encoding
	e.number(2, uint64(t.Nanosecond())) //nolint:gosec // it is not negative
	e.close(at)
}

// open begins a message in a field, with one byte for its length. The caller passes the returned
// position to close.
func (e *encoding) open(field protowire.Number) (begin int) {
	e.text = append(protowire.AppendTag(e.text, field, protowire.BytesType), 0)
	return len(e.text)
}

// close ends a message. A length of more than one byte moves the message.
func (e *encoding) close(begin int) {
	n := uint64(len(e.text) - begin)
	if more := protowire.SizeVarint(n) - 1; more > 0 {
		var room [binary.MaxVarintLen64]byte
		e.text = append(e.text, room[:more]...)
		copy(e.text[begin+more:], e.text[begin:len(e.text)-more])
	}
	binary.PutUvarint(e.text[begin-1:], n)
}

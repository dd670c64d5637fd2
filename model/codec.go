package model

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode returns the stored form of a record, the same in etcd and in a
// snapshot file: JSON, with the shape of the specification given by the kind.
func Encode(r Record) ([]byte, error) { return AppendEncoded(nil, r) }

// AppendEncoded appends what [Encode] returns.
func AppendEncoded(b []byte, r Record) ([]byte, error) {
	if plain, ok := appendPlain(b, &r); ok {
		return plain, nil
	}
	text, err := json.Marshal(r)
	return append(b, text...), err
}

// Decode reads what [Encode] wrote. A kind it does not know is kept as
// [Opaque], so that an older Isthmus carries what a newer one stored.
func Decode(data []byte) (Record, error) { return new(Decoder).Decode(data) }

// UnmarshalJSON decodes the specification according to the kind.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record // drops this method
	aux := struct {
		*plain
		Spec json.RawMessage `json:"spec"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &aux); err != nil {
		return err
	}
	row, _ := rowOf(r.Kind)
	spec, err := row.spec.decode(aux.Spec)
	if err != nil {
		return fmt.Errorf("%s: spec: %w", r.Ref, err)
	}
	r.Spec = spec
	return nil
}

// MarshalJSON encodes the content as it stands if it is JSON and nothing else is
// said, and else wraps it. So an Isthmus that understands the kind reads what
// one that does not understand it has carried.
func (q Opaque) MarshalJSON() ([]byte, error) {
	if q.Type == "" && q.SameMeta(Meta{}) {
		text, err := json.Marshal(json.RawMessage(q.Content))
		if _, wrapped := unwrap(text); err == nil && string(text) == q.Content && !wrapped {
			return text, nil
		}
	}
	return json.Marshal(wrapper{q.Meta, q.Type, []byte(q.Content)})
}

// UnmarshalJSON takes any JSON as content, in the form in which it is encoded again.
func (q *Opaque) UnmarshalJSON(data []byte) error {
	text, err := json.Marshal(json.RawMessage(data))
	if err != nil {
		return err
	}
	if w, wrapped := unwrap(text); wrapped {
		*q = Opaque{Meta: w.Meta, Type: w.Type, Content: string(w.Content)}
		return nil
	}
	*q = Opaque{Content: string(text)}
	return nil
}

// wrapper is the stored form of opaque content that is no JSON, or of which
// something is said beside it.
type wrapper struct {
	Meta
	Type    string `json:"type,omitempty"`
	Content []byte `json:"content"`
}

// unwrap returns what is wrapped in text, and whether text is a wrapper and
// nothing else: one that it would be wrapped in again.
func unwrap(text []byte) (w wrapper, ok bool) {
	if err := json.Unmarshal(text, &w); err != nil || w.Content == nil {
		return wrapper{}, false
	}
	again, err := json.Marshal(w)
	return w, err == nil && bytes.Equal(again, text)
}

package model

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode returns the stored form of a record, the same in a snapshot and in a journal:
// JSON, in which the kind determines the shape of the specification.
func Encode(r Record) ([]byte, error) { return AppendEncoded(nil, r) }

// AppendEncoded appends the result of [Encode].
func AppendEncoded(b []byte, r Record) ([]byte, error) {
	if plain, ok := appendPlain(b, &r); ok {
		return plain, nil
	}
	text, err := json.Marshal(r)
	return append(b, text...), err
}

// Decode decodes the result of [Encode]. An unknown kind is kept as [Opaque], so that an
// older Isthmus carries records that a newer one stored.
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

// MarshalJSON encodes the content unchanged if it is JSON and the other fields are empty.
// Otherwise it wraps the content. An Isthmus that understands the kind can therefore read
// the records that another one has carried.
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

// wrapper is the stored form of opaque content that is not JSON, or that has metadata or a
// type.
type wrapper struct {
	Meta
	Type    string `json:"type,omitempty"`
	Content []byte `json:"content"`
}

// unwrap returns the wrapper in text, and whether text is exactly a wrapper: wrapping its
// content again yields the same text.
func unwrap(text []byte) (w wrapper, ok bool) {
	if err := json.Unmarshal(text, &w); err != nil || w.Content == nil {
		return wrapper{}, false
	}
	again, err := json.Marshal(w)
	return w, err == nil && bytes.Equal(again, text)
}

package model

import (
	"encoding/json"
	"fmt"
)

// Decoder decodes many records, and stores their common values once. Repeated names would
// be most of the memory of many small records. One goroutine owns it. The zero Decoder
// shares nothing.
type Decoder struct{ shared shared }

// NewDecoder returns a decoder that shares the common values of its records.
func NewDecoder() *Decoder {
	return &Decoder{shared{texts: map[string]string{}, labels: map[string]Labels{}, ports: map[string]Map[uint32]{}}}
}

// Decode is [Decode]. It keeps nothing of data.
func (d *Decoder) Decode(data []byte) (Record, error) {
	if r, ok := readPlain(data, &d.shared); ok {
		return r, nil
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	d.shared.record(&r)
	return r, nil
}

// shared is the values that records may have in common. Its maps are nil if nothing is
// shared.
type shared struct {
	texts  map[string]string
	labels map[string]Labels // by their text
	ports  map[string]Map[uint32]

	// The parts of the map that was read last.
	names, values [][]byte
	numbers       []uint32
}

// sharedAtMost bounds the remembered values of each kind. Past the bound, all are forgotten
// and later values are shared anew. Records with much in common are adjacent.
const sharedAtMost = 1 << 16

// own returns an unshared string.
func own(b []byte) string { return string(b) }

func (s *shared) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if known, ok := s.texts[string(b)]; ok {
		return known
	}
	text := string(b)
	keep(s.texts, text, text)
	return text
}

func (s *shared) all(texts [][]byte) []string {
	list := make([]string, len(texts))
	for i, b := range texts {
		list[i] = s.text(b)
	}
	return list
}

func keep[V any](known map[string]V, text string, value V) {
	if known == nil {
		return
	}
	if len(known) >= sharedAtMost {
		clear(known)
	}
	known[text] = value
}

// record shares the common values of a record that was decoded without sharing.
func (s *shared) record(r *Record) {
	for _, text := range [...]*string{
		(*string)(&r.Kind), &r.Source, &r.Namespace, (*string)(&r.Path), &r.Place,
		(*string)(&r.Owner.Kind), &r.Owner.Source, &r.Owner.Namespace, &r.Owner.Name,
	} {
		if known, ok := s.texts[*text]; ok {
			*text = known
		} else {
			keep(s.texts, *text, *text)
		}
	}
}

package model

import (
	"encoding/json"
	"fmt"
)

// Decoder decodes many records, and holds once what they have in common: of
// many small records, names that come again and again would be most of the
// weight. It is for one goroutine. The zero Decoder shares nothing.
type Decoder struct{ shared shared }

// NewDecoder returns a decoder whose records share what they have in common.
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

// shared is what records may have in common. Its maps are nil if nothing is shared.
type shared struct {
	texts  map[string]string
	labels map[string]Labels // by their text
	ports  map[string]Map[uint32]

	// Of the map that was read last.
	names, values [][]byte
	numbers       []uint32
}

// sharedAtMost bounds what is remembered of either kind: past it, all is
// forgotten and what comes is shared anew. Records that have much in common
// lie next to each other.
const sharedAtMost = 1 << 16

// own makes a string that is not shared.
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

// record shares what is common of a record that was decoded without.
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

package model

import (
	"encoding/hex"
	"strconv"
)

// appendPlain appends the stored form of a plain record: an endpoint without texts that
// JSON has to escape. There are hundreds of thousands of such endpoints. The form is
// therefore written by hand: the same text as from encoding/json, at a fraction of its
// cost. It reports false for any other record, and the appended text is then meaningless.
func appendPlain(b []byte, r *Record) ([]byte, bool) {
	endpoint, ok := r.Spec.(Endpoint)
	if !ok || r.Kind != KindEndpoint {
		return b, false
	}
	w := plainWriter{b, true}
	w.ref(r.Ref)
	w.literal(`,"uid":"`)
	w.b = hex.AppendEncode(w.b, r.UID[:])
	w.literal(`","revision":`)
	w.b = strconv.AppendUint(w.b, r.Revision, 10)
	w.literal(`,"generation":`)
	w.b = strconv.AppendUint(w.b, r.Generation, 10)
	if r.Owner != (Ref{}) {
		w.literal(`,"owner":`)
		w.ref(r.Owner)
		w.literal("}")
	}
	w.optional(`,"path":`, string(r.Path))
	w.optional(`,"place":`, r.Place)
	if r.Status != (Status{}) {
		w.status(&r.Status)
	}
	w.literal(`,"spec":`)
	w.endpoint(&endpoint)
	w.literal("}")
	return w.b, w.plain
}

// plainWriter appends to b. plain is false after a text that cannot be written unescaped.
type plainWriter struct {
	b     []byte
	plain bool
}

func (w *plainWriter) literal(s string) { w.b = append(w.b, s...) }

func (w *plainWriter) text(s string) {
	w.plain = w.plain && isPlain(s)
	w.b = append(append(append(w.b, '"'), s...), '"')
}

func (w *plainWriter) optional(name, s string) {
	if s != "" {
		w.literal(name)
		w.text(s)
	}
}

// ref writes the fields of a reference, and leaves the object open.
func (w *plainWriter) ref(r Ref) {
	w.literal(`{"kind":`)
	w.text(string(r.Kind))
	w.literal(`,"key":{"source":`)
	w.text(r.Source)
	w.optional(`,"namespace":`, r.Namespace)
	w.literal(`,"name":`)
	w.text(r.Name)
	w.literal("}")
}

func (w *plainWriter) status(s *Status) {
	w.literal(`,"status":`)
	w.object(func() {
		w.optional(`,"stale":`, s.Stale)
		w.optional(`,"held":`, s.LegacyHeld)
		if s.Since.IsZero() {
			return
		}
		since, err := s.Since.MarshalJSON()
		w.plain = w.plain && err == nil
		w.literal(`,"since":`)
		w.b = append(w.b, since...)
	})
}

func (w *plainWriter) endpoint(e *Endpoint) {
	w.literal(`{"address":`)
	w.text(e.Address)
	if e.Also.Len() > 0 {
		w.literal(`,"additionalAddresses":`)
		w.list(e.Also)
	}
	if e.Ports.Len() > 0 {
		w.literal(`,"ports":`)
		w.object(func() {
			for name, port := range e.Ports.All() {
				w.name(name)
				w.b = strconv.AppendUint(w.b, uint64(port), 10)
			}
		})
	}
	if e.Labels.Len() > 0 {
		w.literal(`,"labels":`)
		w.object(func() {
			for name, value := range e.Labels.All() {
				w.name(name)
				w.text(value)
			}
		})
	}
	w.optional(`,"network":`, e.Network)
	if l := &e.Locality; *l != (Locality{}) {
		w.literal(`,"locality":`)
		w.object(func() {
			w.optional(`,"region":`, l.Region)
			w.optional(`,"zone":`, l.Zone)
			w.optional(`,"subZone":`, l.SubZone)
		})
	}
	w.optional(`,"node":`, e.Node)
	if e.Weight != 0 {
		w.literal(`,"weight":`)
		w.b = strconv.AppendUint(w.b, uint64(e.Weight), 10)
	}
	if e.Exact {
		w.literal(`,"exact":true`)
	}
	w.optional(`,"serviceAccount":`, e.ServiceAccount)
	w.optional(`,"health":`, string(e.Health))
	if e.Registered > 0 {
		w.literal(`,"registered":`)
		w.b = strconv.AppendInt(w.b, e.Registered, 10)
	}
	w.plain = w.plain && e.Registered >= 0
	w.literal("}")
}

// list writes a list that is not empty.
func (w *plainWriter) list(l List[string]) {
	for i, item := range l.items {
		if i == 0 {
			w.literal("[")
		} else {
			w.literal(",")
		}
		w.text(item)
	}
	w.literal("]")
}

// object writes an object with fields that each begin with a comma.
func (w *plainWriter) object(fields func()) {
	start := len(w.b)
	fields()
	if len(w.b) == start {
		w.b = append(w.b, '{')
	} else {
		w.b[start] = '{'
	}
	w.b = append(w.b, '}')
}

func (w *plainWriter) name(s string) {
	w.b = append(w.b, ',')
	w.text(s)
	w.b = append(w.b, ':')
}

// isPlain reports whether JSON contains a text unescaped.
func isPlain(s string) bool {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			return false
		}
	}
	return true
}

// isPlainByte reports whether encoding/json never escapes a byte: ASCII except control
// characters and the special characters of JSON and HTML.
func isPlainByte(c byte) bool {
	switch c {
	case '"', '\\', '<', '>', '&':
		return false
	default:
		return ' ' <= c && c < 0x7f
	}
}

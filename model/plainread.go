package model

import (
	"bytes"
	"slices"
)

// plainReader reads a record in the exact form of appendPlain. plain is false after any
// other text. The reader then continues without effect, and its results are meaningless.
type plainReader struct {
	text   []byte // the unread rest
	plain  bool
	shared *shared
}

// readPlain reports false for a text in any other form.
func readPlain(data []byte, s *shared) (rec Record, ok bool) {
	r := plainReader{data, true, s}
	if !r.maybe(`{"kind":"Endpoint",`) {
		return Record{}, false
	}
	rec.Ref = Ref{KindEndpoint, r.key(own)}
	r.expect(`,"uid":"`)
	r.uid(&rec.UID)
	r.expect(`","revision":`)
	rec.Revision = r.number(1<<64 - 1)
	r.expect(`,"generation":`)
	rec.Generation = r.number(1<<64 - 1)
	if r.maybe(`,"owner":{"kind":`) {
		rec.Owner.Kind = Kind(s.text(r.string()))
		r.expect(",")
		rec.Owner.Key = r.key(s.text)
		r.expect("}")
	}
	r.optional(`,"origin":`) // earlier versions name the instance that wrote the record
	rec.Path = Path(s.text(r.optional(`,"path":`)))
	rec.Place = s.text(r.optional(`,"place":`))
	if r.maybe(`,"status":{`) {
		r.status(&rec.Status)
	}
	var e Endpoint
	r.expect(`,"spec":{"address":`)
	r.endpoint(&e)
	r.expect("}}")
	rec.Spec = e
	return rec, r.plain && len(r.text) == 0
}

func (r *plainReader) maybe(literal string) bool {
	if len(r.text) < len(literal) || string(r.text[:len(literal)]) != literal {
		return false
	}
	r.text = r.text[len(literal):]
	return true
}

func (r *plainReader) expect(literal string) { r.plain = r.maybe(literal) && r.plain }

// string takes an unescaped text.
func (r *plainReader) string() []byte {
	r.expect(`"`)
	for i, c := range r.text {
		if c == '"' {
			s := r.text[:i]
			r.text = r.text[i+1:]
			return s
		}
		if !isPlainByte(c) {
			break
		}
	}
	r.plain = false
	return nil
}

func (r *plainReader) optional(name string) []byte {
	if !r.maybe(name) {
		return nil
	}
	return r.string()
}

// number takes a whole number without leading zeros, up to a limit.
func (r *plainReader) number(limit uint64) (n uint64) {
	i := 0
	for ; i < len(r.text) && '0' <= r.text[i] && r.text[i] <= '9'; i++ {
		digit := uint64(r.text[i] - '0')
		if n > (limit-digit)/10 {
			r.plain = false
			return 0
		}
		n = 10*n + digit
	}
	if i == 0 || i > 1 && r.text[0] == '0' {
		r.plain = false
	}
	r.text = r.text[i:]
	return n
}

func (r *plainReader) uid(u *UID) {
	const digits = 2 * len(u)
	if len(r.text) < digits || u.UnmarshalText(r.text[:digits]) != nil {
		r.plain = false
		return
	}
	r.text = r.text[digits:]
}

// key takes a key; name converts its name.
func (r *plainReader) key(name func([]byte) string) (k Key) {
	r.expect(`"key":{"source":`)
	k.Source = r.shared.text(r.string())
	k.Namespace = r.shared.text(r.optional(`,"namespace":`))
	r.expect(`,"name":`)
	k.Name = name(r.string())
	r.expect("}")
	return k
}

// member takes the name of a field and the comma before it. The first field of an object
// has no comma.
func (r *plainReader) member(comma *string, name string) bool {
	n := len(*comma)
	if len(r.text) < n || string(r.text[:n]) != *comma {
		return false
	}
	whole := r.text
	r.text = r.text[n:]
	if !r.maybe(name) {
		r.text = whole
		return false
	}
	*comma = ","
	return true
}

func (r *plainReader) memberText(comma *string, name string) string {
	if !r.member(comma, name) {
		return ""
	}
	return r.shared.text(r.string())
}

// status takes a status after its opening brace.
func (r *plainReader) status(s *Status) {
	comma := ""
	s.Stale = r.memberText(&comma, `"stale":`)
	s.LegacyHeld = r.memberText(&comma, `"held":`)
	if r.member(&comma, `"since":`) {
		r.plain = s.Since.UnmarshalText(r.string()) == nil && r.plain
	}
	r.expect("}")
}

// endpoint takes an endpoint after the name of its first field, without the closing brace.
func (r *plainReader) endpoint(e *Endpoint) {
	e.Address = own(r.string())
	if r.maybe(`,"additionalAddresses":[`) {
		e.Also = r.list()
	}
	if r.maybe(`,"ports":`) {
		e.Ports = r.ports()
	}
	if r.maybe(`,"labels":`) {
		e.Labels = r.labels()
	}
	e.Network = r.shared.text(r.optional(`,"network":`))
	if r.maybe(`,"locality":{`) {
		r.locality(&e.Locality)
	}
	e.Node = r.shared.text(r.optional(`,"node":`))
	if r.maybe(`,"weight":`) {
		e.Weight = uint32(r.number(1<<32 - 1))
	}
	e.Exact = r.maybe(`,"exact":true`)
	e.ServiceAccount = r.shared.text(r.optional(`,"serviceAccount":`))
	e.Health = Health(r.shared.text(r.optional(`,"health":`)))
	if r.maybe(`,"registered":`) {
		e.Registered = int64(r.number(1<<63 - 1)) //nolint:gosec // it fits
	}
}

// locality takes a locality after its opening brace.
func (r *plainReader) locality(l *Locality) {
	comma := ""
	l.Region = r.memberText(&comma, `"region":`)
	l.Zone = r.memberText(&comma, `"zone":`)
	l.SubZone = r.memberText(&comma, `"subZone":`)
	r.expect("}")
}

// list takes a list that is not empty, after its opening bracket.
func (r *plainReader) list() List[string] {
	items := []string{own(r.string())}
	for r.plain && r.maybe(",") {
		items = append(items, own(r.string()))
	}
	r.expect("]")
	return List[string]{items}
}

// entries takes a map with sorted, unique names. Names and values stay in shared until the
// next map. It returns the text of the map.
func (r *plainReader) entries(value func()) []byte {
	start, s := r.text, r.shared
	s.names, s.values, s.numbers = s.names[:0], s.values[:0], s.numbers[:0]
	r.expect("{")
	for r.plain {
		name := r.string()
		if n := len(s.names); n > 0 && bytes.Compare(s.names[n-1], name) >= 0 {
			break
		}
		s.names = append(s.names, name)
		r.expect(":")
		value()
		if r.maybe("}") {
			return start[:len(start)-len(r.text)]
		}
		r.expect(",")
	}
	r.plain = false
	return nil
}

func (r *plainReader) labels() (m Labels) {
	s := r.shared
	text := r.entries(func() { s.values = append(s.values, r.string()) })
	if !r.plain {
		return m
	}
	if known, ok := s.labels[string(text)]; ok {
		return known
	}
	m = Labels{s.all(s.names), s.all(s.values)}
	keep(s.labels, string(text), m)
	return m
}

func (r *plainReader) ports() (m Map[uint32]) {
	s := r.shared
	text := r.entries(func() { s.numbers = append(s.numbers, uint32(r.number(1<<32-1))) })
	if !r.plain {
		return m
	}
	if known, ok := s.ports[string(text)]; ok {
		return known
	}
	m = Map[uint32]{s.all(s.names), slices.Clone(s.numbers)}
	keep(s.ports, string(text), m)
	return m
}

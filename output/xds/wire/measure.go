package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Limits bound a request.
type Limits struct {
	Names      int // of one type
	NamesBytes int // of all names together
	FieldBytes int // of every other field, such as the node
}

// Fields of requests that carry one name each, or a name and a version. An honest request
// contains each of the other fields once.
var (
	nameFields  = [...][]protowire.Number{world.WholeState: {3, 7}, world.Delta: {3, 4, 5, 8, 9}}
	otherFields = 32
)

// measure counts the fields of a request and keeps nothing of it.
func (l Limits) measure(text []byte, mode world.Mode) error {
	var names [10]int // by field
	others, bytes := 0, 0
	for len(text) > 0 {
		if size, count := run(text); count > 0 {
			text = text[size:]
			names[fieldNames] += count
			bytes += size - count // without the tags
			if err := l.tooMany(names[fieldNames], bytes); err != nil {
				return err
			}
			continue
		}
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errNoRequest
		}
		size := protowire.ConsumeFieldValue(field, kind, text[n:])
		if size < 0 {
			return errNoRequest
		}
		text = text[n+size:]
		if isName(field, mode) {
			names[field]++
			bytes += size
			if err := l.tooMany(names[field], bytes); err != nil {
				return err
			}
			continue
		}
		if others++; others > otherFields || size > l.FieldBytes {
			return streams.TooLarge("a request with a field of more than %d bytes, such as the node, or with the same field again and again; shorten the node's metadata", l.FieldBytes)
		}
	}
	return nil
}

// tooMany returns why a request may not have so many names, of so many bytes.
func (l Limits) tooMany(names, bytes int) error {
	if names > l.Names {
		return streams.TooLarge("a request with more than %d names of one type, which is all a stream may have; ask for less on a stream, or for everything by *", l.Names)
	}
	if bytes > l.NamesBytes {
		return streams.TooLarge("a request with names of more than %d bytes, which is all a stream may have; ask for less on a stream, or for everything by *", l.NamesBytes)
	}
	return nil
}

func isName(field protowire.Number, mode world.Mode) bool {
	return slices.Contains(nameFields[mode], field)
}

package mcp

import "google.golang.org/protobuf/encoding/protowire"

// MostFields bounds the fields of one object, each of which takes many times what its
// text does while it is read. Nothing that is meant has so many.
const MostFields = 1 << 19

// CountFields counts the fields of an encoded message; it is not ok if there are more
// than most.
func CountFields(message []byte, most int) (n int, ok bool) {
	for len(message) > 0 {
		_, _, size := protowire.ConsumeField(message)
		if size < 0 {
			break // whoever decodes it says why
		}
		message = message[size:]
		if n++; n > most {
			return n, false
		}
	}
	return n, true
}

// HasMoreFields reports whether a message, and the messages in one of its fields, have
// more fields than most in all. A field may be two bytes on the wire and a hundred in
// memory, so this is asked before a message is decoded.
func HasMoreFields(message []byte, nested protowire.Number, most int) bool {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return false // whoever decodes it says why
		}
		if most--; most < 0 {
			return true
		}
		if number == nested && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			inner, _ := protowire.ConsumeBytes(message[tag:])
			n, _ := CountFields(inner, most)
			most -= n
		}
		message = message[size:]
	}
	return most < 0
}

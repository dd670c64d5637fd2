package mcp

import "google.golang.org/protobuf/encoding/protowire"

// MostFields bounds the fields of one object. While it is read, each field takes a multiple
// of its text. No legitimate object has so many.
const MostFields = 1 << 19

// CountFields counts the fields of an encoded message; it is not ok if there are more
// than most.
func CountFields(message []byte, most int) (n int, ok bool) {
	for len(message) > 0 {
		_, _, size := protowire.ConsumeField(message)
		if size < 0 {
			break // the decoder reports the reason
		}
		message = message[size:]
		if n++; n > most {
			return n, false
		}
	}
	return n, true
}

// CountNested counts the fields of a message, and of the messages in one of its fields; ok
// is false if there are more than most in all. A field may be two bytes on the wire and a
// hundred in memory, so the check precedes the decoding.
func CountNested(message []byte, nested protowire.Number, most int) (n int, ok bool) {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			break // the decoder reports the reason
		}
		if n++; number == nested && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			inner, _ := protowire.ConsumeBytes(message[tag:])
			more, _ := CountFields(inner, most-min(n, most))
			n += more
		}
		if n > most {
			return n, false
		}
		message = message[size:]
	}
	return n, true
}

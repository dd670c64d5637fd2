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

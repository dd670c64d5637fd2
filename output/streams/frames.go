package streams

// frames parses a client's bytes on a connection, frame by frame, and counts the opened
// streams. It reads only the kind and the length of each frame, so it costs next to
// nothing, and it keeps neither.
type frames struct {
	begun bool
	left  int     // bytes of the preface, or of a frame's contents, still to come
	head  [9]byte // of the next frame, as received so far
	n     int     // bytes of it
}

const (
	prefaceBytes = 24 // "PRI * HTTP/2.0…", before the first frame
	opensStream  = 1  // HEADERS
)

// opened returns how many streams are opened by the bytes that came next.
func (f *frames) opened(text []byte) (streams int) {
	if !f.begun {
		f.begun, f.left = true, prefaceBytes
	}
	for len(text) > 0 {
		if f.left > 0 {
			passed := min(f.left, len(text))
			f.left -= passed
			text = text[passed:]
			continue
		}
		copied := copy(f.head[f.n:], text)
		text = text[copied:]
		if f.n += copied; f.n < len(f.head) {
			return streams
		}
		f.n, f.left = 0, int(f.head[0])<<16|int(f.head[1])<<8|int(f.head[2])
		if f.head[3] == opensStream {
			streams++
		}
	}
	return streams
}

package registry

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// Bounds of an answer. Its text is kept until it has been decoded, which takes more
// memory, so the size has a bound. Compressed answers have a bound of growth: JSON
// grows by ten to thirty times, and a gzip bomb by a thousand.
const (
	largestAnswer  = 256 << 20
	largestGrowth  = 100
	growthFree     = 1 << 20 // growth up to these bytes is not checked
	fewestPerValue = 16      // bytes of an answer for each of its maps and lists
	valuesFree     = 10_000
)

// askCompressed makes the registry compress its answers if it can. The transport
// could do so by itself, but would not report the growth.
func askCompressed(h http.Header) { h.Set("Accept-Encoding", "gzip") }

// excessive is the error for an answer that would take too much memory.
type excessive struct{ reason string }

// Error implements error.
func (e *excessive) Error() string { return e.reason }

func exceeds(format string, args ...any) error { return &excessive{fmt.Sprintf(format, args...)} }

// readBody reads an answer of at most so many bytes to its end. An [excessive] answer
// fails before its memory is taken.
func readBody(answer *http.Response, most int64) ([]byte, error) {
	sent := &counter{from: answer.Body}
	body, err := decompressed(sent, answer.Header.Get("Content-Encoding"), most)
	if err == nil && answer.StatusCode == http.StatusOK {
		err = checkDensity(body)
	}
	return body, err
}

func decompressed(sent *counter, encoding string, most int64) ([]byte, error) {
	if encoding != "gzip" {
		return readUpTo(sent, most, func(int64) error { return nil })
	}
	plain, err := gzip.NewReader(sent)
	if err != nil {
		return nil, fmt.Errorf("says that it is compressed: %w", err)
	}
	return readUpTo(plain, most, func(n int64) error {
		if n <= growthFree+largestGrowth*sent.n {
			return nil
		}
		return exceeds("the answer is %d KiB of gzip that grow to more than %d times as much, which no list of services does: %s",
			sent.n>>10, largestGrowth, checkAddress)
	})
}

// readUpTo reads up to a limit, while check allows each length.
func readUpTo(from io.Reader, most int64, check func(n int64) error) ([]byte, error) {
	var body bytes.Buffer
	for {
		_, err := io.CopyN(&body, from, 64<<10)
		n := int64(body.Len())
		if n > most {
			return nil, exceeds("the answer has more than the %d MiB that are read: narrow environments or apps of the source, or divide it into several",
				most>>20)
		}
		if broken := check(n); broken != nil {
			return nil, broken
		}
		if err == io.EOF { //nolint:errorlint // as io.CopyN documents
			return body.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// counter counts the bytes read.
type counter struct {
	from io.Reader
	n    int64
}

// Read implements [io.Reader].
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// checkDensity fails for an answer of so many values that decoding it would take many
// times its size.
func checkDensity(body []byte) error {
	values := bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("["))
	if values <= valuesFree+len(body)/fewestPerValue {
		return nil
	}
	return exceeds("the answer has %d KiB and %d maps and lists, more than one for each %d bytes: %s",
		len(body)>>10, values, fewestPerValue, checkAddress)
}

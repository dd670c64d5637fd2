package registry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

func compressed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is too large is given up where the bound is, and not read to its end.
func TestTooLargeAnswerIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	for name, test := range map[string]struct {
		body     []byte
		encoding string
		read     int // at most
		want     string
	}{
		"plain": {bytes.Repeat([]byte(" "), 8*most), "", most + 128<<10, "more than the 2 MiB that are read: narrow environments or apps"},
		"gzip":  {compressed(t, bytes.Repeat([]byte(" "), 64*most)), "gzip", 32 << 10, "of gzip that grow to more than 100 times"},
	} {
		sent := bytes.NewReader(test.body)
		_, err := registry.ReadBody(&http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {test.encoding}}, Body: io.NopCloser(sent),
		}, most)
		if read := len(test.body) - sent.Len(); err == nil || !strings.Contains(err.Error(), test.want) || read > test.read {
			t.Errorf("%s: %d bytes of %d were read, then: %v", name, read, len(test.body), err)
		}
	}
}

package servicecenter_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// says answers a request with a text, compressed if that is asked for and wanted.
func says(text []byte, compress bool) standin.Fault {
	return func(_ *standin.Server, w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		if compress && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = w.Write(text) // it is not read to its end
	}
}

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

// An answer that takes many times its size is not read to its end: what it was, how
// large and what to do is said, and all that is stored stays.
func TestAnswersThatTakeTooMuchMemoryAreNotTaken(t *testing.T) {
	spaces := bytes.Repeat([]byte(" "), 32<<20)
	for name, test := range map[string]struct {
		answer standin.Fault
		want   string
	}{
		"a bomb of gzip":          {says(compressed(t, spaces), true), "of gzip that grow to more than 100 times as much"},
		"hardly anything but {}":  {says([]byte(`{"services":[`+strings.Repeat("{},", 1<<20)+`{}]}`), false), "more than one for each 16 bytes"},
		"the same, but as chunks": {says(compressed(t, []byte(`{"services":[`+strings.Repeat("{},", 1<<16)+`{}]}`)), true), "more than one for each 16 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				r.many("cart", 1, 2)
				m := r.mirror(r.config())
				r.rounds(1)
				before := m.stored()
				r.Inject(standin.ListServices, test.answer, 0)
				r.pass(3 * time.Second)
				m.is(source.StateStale, test.want)
				if got := m.stored(); got != before {
					t.Errorf("stored is %s, was %s", got, before)
				}
				r.Repair()
				r.pass(30 * time.Second)
				m.is(source.StateLive, "")
			})
		})
	}
}

// A registry that compresses its answers is read as any other.
func TestCompressedAnswersAreRead(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 1, 2)
		asked := 0
		r.Inject(standin.ListServices, func(_ *standin.Server, w http.ResponseWriter, req *http.Request, next http.Handler) {
			plain := &recorded{header: http.Header{}}
			next.ServeHTTP(plain, req)
			asked++
			says(compressed(t, plain.Bytes()), true)(nil, w, req, nil)
		}, 0)
		m := r.mirror(r.config())
		r.rounds(1)
		m.is(source.StateLive, "")
		if asked == 0 || !strings.Contains(m.stored(), "cart") {
			t.Errorf("asked %d times; stored is %s", asked, m.stored())
		}
	})
}

// recorded keeps what a handler answers.
type recorded struct {
	bytes.Buffer
	header http.Header
}

func (r *recorded) Header() http.Header { return r.header }
func (r *recorded) WriteHeader(int)     {}

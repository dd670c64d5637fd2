package hostlist_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/test/additions/hostlist"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What every listed source has to pass.
func TestListed(t *testing.T) {
	t.Parallel()
	sourcetest.RunListed(t, sourcetest.Listed{
		Open: open, Faults: []string{"it answers with an error", "it breaks off", "it never answers"},
		Lag: 8 * time.Second,
	})
}

// list is a registry that the suite steers. It is the transport of HTTP instead of a server
// on the network, so that histories run in fake time.
type list struct {
	mu    sync.Mutex // guards the rest
	lines string
	fault int // none if negative
}

func open(testing.TB) sourcetest.Registry {
	l := &list{fault: -1}
	http.DefaultTransport = l
	return l
}

// Open implements [sourcetest.Registry].
func (l *list) Open(env source.Env) source.Source {
	c := &hostlist.Config{URL: "http://list.example/", Poll: time.Second, Timeout: 6 * time.Second}
	return c.Open(env)
}

// Set implements [sourcetest.Registry].
func (l *list) Set(services sourcetest.Services) {
	var lines strings.Builder
	for host, service := range services.Sorted() {
		if service.Bad {
			fmt.Fprintln(&lines, host, "nowhere")
			continue
		}
		for _, e := range service.Endpoints {
			fmt.Fprintln(&lines, host, e)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = lines.String()
}

// Fail implements [sourcetest.Registry].
func (l *list) Fail(way int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = way
}

// Restore implements [sourcetest.Registry].
func (l *list) Restore() { l.Fail(-1) }

// Close implements [sourcetest.Registry].
func (l *list) Close() {}

// RoundTrip answers a request of the one list that is open.
func (l *list) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	lines, fault := l.lines, l.fault
	l.mu.Unlock()
	answer := httptest.NewRecorder()
	switch fault {
	case 0:
		http.Error(answer, "out of order", http.StatusInternalServerError)
	case 1:
		broken := answer.Result()
		broken.Body = io.NopCloser(io.MultiReader(strings.NewReader(lines[:len(lines)/2]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return broken, nil
	case 2:
		<-r.Context().Done()
		return nil, r.Context().Err()
	default:
		_, _ = io.WriteString(answer, lines)
	}
	return answer.Result(), nil
}

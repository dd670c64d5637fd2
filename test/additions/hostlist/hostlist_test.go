package hostlist_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
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
		Lag: 40 * time.Millisecond, RealTime: true, Histories: 5,
	})
}

// list is a registry that the suite steers.
type list struct {
	*httptest.Server
	mu    sync.Mutex // guards the rest
	lines string
	fault int // none if negative
}

func open(testing.TB) sourcetest.Registry {
	l := &list{fault: -1}
	l.Server = httptest.NewServer(l)
	return l
}

// Open implements [sourcetest.Registry].
func (l *list) Open(env source.Env) source.Source {
	c := &hostlist.Config{URL: l.URL, Poll: 5 * time.Millisecond, Timeout: 30 * time.Millisecond}
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

// Disconnect implements [sourcetest.Disconnecter].
func (l *list) Disconnect() { l.CloseClientConnections() }

// Close implements [sourcetest.Registry].
func (l *list) Close() {
	l.CloseClientConnections()
	l.Server.Close()
	http.DefaultClient.CloseIdleConnections()
}

func (l *list) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	lines, fault := l.lines, l.fault
	l.mu.Unlock()
	switch fault {
	case 0:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case 1:
		w.Header().Set("Content-Length", fmt.Sprint(len(lines)+1))
		_, _ = io.WriteString(w, lines[:len(lines)/2])
	case 2:
		<-r.Context().Done()
	default:
		_, _ = io.WriteString(w, lines)
	}
}

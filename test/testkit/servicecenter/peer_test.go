package servicecenter_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// peer is a client of a stand-in, in a bubble of its own time.
type peer struct {
	*servicecenter.Server
	client *http.Client
	header http.Header // of each request
}

func inBubble(t *testing.T, c servicecenter.Config, test func(t *testing.T, p *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, connect(t, servicecenter.New(c))) })
}

// connect has a stand-in serve until the end of the test.
func connect(t *testing.T, s *servicecenter.Server) *peer {
	t.Helper()
	memory := servicecenter.NewMemory()
	transport := &http.Transport{DialContext: memory.DialContext}
	s.Serve(memory)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return &peer{s, &http.Client{Transport: transport}, http.Header{}}
}

// answer is what a request was answered with.
type answer struct {
	status int
	rev    string
	text   string
	code   string // of an error
	err    error  // if there was no whole answer
}

func (p *peer) ask(t *testing.T, method, path, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = p.header.Clone()
	response, err := p.client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	var rejection struct{ ErrorCode string }
	_ = json.Unmarshal(text, &rejection) // it may be no error, or no JSON
	return answer{response.StatusCode, response.Header.Get("X-Resource-Revision"), string(text), rejection.ErrorCode, err}
}

// finding is what a find found.
type finding struct {
	answer
	ids []string
}

// find looks up a service of the app shop as a consumer, or as nobody.
func (p *peer) find(t *testing.T, name, consumer, rev string) finding {
	t.Helper()
	p.header.Del("X-ConsumerId")
	if consumer != "" {
		p.header.Set("X-ConsumerId", consumer)
	}
	f := finding{answer: p.ask(t, http.MethodGet, "/v4/default/registry/instances?appId=shop&serviceName="+name+"&rev="+rev, "")}
	p.header.Del("X-ConsumerId")
	var body struct{ Instances []servicecenter.Instance }
	_ = json.Unmarshal([]byte(f.text), &body)
	for _, i := range body.Instances {
		f.ids = append(f.ids, i.ID)
	}
	return f
}

// shop registers a service of the app shop.
func (p *peer) shop(name string) string {
	return p.Register(servicecenter.Service{App: "shop", Name: name, Version: "1.0.0"})
}

func (p *peer) instance(service, id string) {
	p.RegisterInstance(service, servicecenter.Instance{ID: id, HostName: id, Endpoints: []string{"rest://10.0.0.1:80"}})
}

// watch watches for a consumer and collects what it is sent, as "ACTION id".
func (p *peer) watch(t *testing.T, consumer string) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(p.URL(), "http")+"/v4/default/registry/microservices/"+consumer+"/watcher",
		&websocket.DialOptions{HTTPClient: p.client})
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			w.add(text)
		}
	}()
	return w
}

// watch is what a watcher was sent.
type watch struct {
	mu    sync.Mutex
	got   []string
	ended chan struct{}
}

func (w *watch) add(text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var e servicecenter.Event
	if json.Unmarshal(text, &e) == nil && e.Instance != nil {
		text = []byte(e.Action + " " + e.Instance.ID)
	}
	w.got = append(w.got, string(text))
}

// take is what has come since it was last asked.
func (w *watch) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

func (w *watch) isOver() bool {
	synctest.Wait()
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

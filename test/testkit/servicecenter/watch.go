package servicecenter

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	queued      = 5000 // events per watcher
	pingEvery   = 30 * time.Second
	readWithin  = 4 * pingEvery // else the client is taken for gone
	writeWithin = 5 * time.Second
	readAtMost  = 64 // bytes a frame of the client may have
)

// watcher is the watch of a consumer: a websocket that gets events of the
// providers the consumer has looked up.
type watcher struct {
	consumer serviceID
	events   chan Event
	silent   atomic.Bool // the client pings, so it is not pinged
	idle     *time.Timer
	conn     *websocket.Conn
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	watcher := &watcher{
		consumer: serviceID{tenantOf(r), r.PathValue("service")},
		events:   make(chan Event, s.config.queue()),
	}
	ctx, leave := context.WithCancel(s.done)
	defer leave()
	watcher.idle = time.AfterFunc(readWithin, leave)
	defer watcher.idle.Stop()
	conn, err := websocket.Accept(w, r, watcher.options())
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }() // as the original: without a word
	conn.SetReadLimit(readAtMost)
	watcher.conn = conn
	if !s.subscribe(watcher) {
		_ = watcher.write(ctx, []byte("service does not exist"))
		return
	}
	defer s.unsubscribe(watcher)
	s.serving.Go(func() { watcher.read(ctx, leave) })
	s.serving.Go(func() { s.ping(ctx, watcher) })
	s.send(ctx, watcher)
}

func (w *watcher) options() *websocket.AcceptOptions {
	return &websocket.AcceptOptions{
		InsecureSkipVerify: true, // any origin may watch
		OnPingReceived: func(context.Context, []byte) bool {
			w.silent.Store(true)
			w.idle.Reset(readWithin)
			return false // the original's pong is empty, so it answers no ping with a payload
		},
		OnPongReceived: func(context.Context, []byte) { w.idle.Reset(readWithin) },
	}
}

// subscribe is false if the consumer is unknown.
func (s *Server) subscribe(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache.services[w.consumer] == nil {
		return false
	}
	if s.watchers[w.consumer] == nil {
		s.watchers[w.consumer] = map[*watcher]bool{}
	}
	s.watchers[w.consumer][w] = true
	return true
}

func (s *Server) unsubscribe(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers[w.consumer], w)
}

// read discards the client's messages until it leaves.
func (w *watcher) read(ctx context.Context, leave func()) {
	defer leave()
	for {
		if _, _, err := w.conn.Read(ctx); err != nil {
			return
		}
	}
}

// ping pings while the consumer exists and the client does not ping itself.
func (s *Server) ping(ctx context.Context, w *watcher) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if w.silent.Load() {
			continue
		}
		if !s.exists(w.consumer) {
			return
		}
		// A missing pong is detected by idle.
		within, cancel := context.WithTimeout(ctx, pingEvery/2)
		_ = w.conn.Ping(within)
		cancel()
	}
}

func (s *Server) exists(at serviceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.services[at] != nil
}

// send sends the events as they come. A held event has left the queue.
func (s *Server) send(ctx context.Context, w *watcher) {
	for {
		var e Event
		select {
		case e = <-w.events:
		case <-ctx.Done():
			return
		}
		select {
		case <-s.eventsHeld():
		case <-ctx.Done():
			return
		}
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // an event is made of strings
		}
		if err := w.write(ctx, text); err != nil {
			return
		}
	}
}

func (w *watcher) write(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return w.conn.Write(ctx, websocket.MessageText, text)
}

// publish notifies the watchers of the consumers that depend on the service.
func (s *Server) publish(c change, of *Service) {
	if s.config.NoEvents {
		return
	}
	e := Event{c.action, keyOf(c.at.tenant, of), c.held.Instance}
	for _, consumer := range s.consumers(nameOf(c.at.tenant, of)) {
		for w := range s.watchers[consumer] {
			w.push(e)
		}
	}
}

func keyOf(t tenant, s *Service) *Key {
	return &Key{string(t), s.Environment, s.App, s.Name, s.Alias, s.Version}
}

// push queues an event. When the queue is full, all its events are dropped silently.
func (w *watcher) push(e Event) {
	for {
		select {
		case w.events <- e:
			return
		default:
		}
		w.discard()
	}
}

func (w *watcher) discard() {
	for {
		select {
		case <-w.events:
		default:
			return
		}
	}
}

// Watchers is how many watches this replica has.
func (s *Server) Watchers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, of := range s.watchers {
		n += len(of)
	}
	return n
}

// DropWatchers cuts all watches of this replica, without a closing frame.
func (s *Server) DropWatchers() {
	s.mu.Lock()
	var all []*watcher
	for _, of := range s.watchers {
		for w := range of {
			all = append(all, w)
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		_ = w.conn.CloseNow()
	}
}

// Emit queues an event for every watch of this replica, regardless of its lookups.
func (s *Server) Emit(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.watchers {
		for w := range of {
			w.push(e)
		}
	}
}

// HoldEvents holds events in the watchers' queues, as for slow clients, until the returned
// function is called.
func (s *Server) HoldEvents() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return func() { close(held) }
}

// eventsHeld is closed when events may be sent.
func (s *Server) eventsHeld() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

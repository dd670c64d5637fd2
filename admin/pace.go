package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// responsesAtOnce bounds the pages that are being made or sent.
	responsesAtOnce = 64
	// socketBytes is the socket's buffer for an unread page.
	socketBytes = 64 << 10
	// chunk is the bytes of a page that are sent at a time. The reader has chunkTime to take
	// them, and as long again for the next.
	chunk     = 32 << 10
	chunkTime = 10 * time.Second
	// heldAtOnce bounds the bytes of unread pages, beyond a chunk of each.
	heldAtOnce = 32 << 20
	// bodyTime is the time for a request's body.
	bodyTime = 10 * time.Second
	// headerBytes bounds the header of a request.
	headerBytes = 64 << 10
	// idleTime is how long a connection without requests stays open.
	idleTime = 2 * time.Minute
)

var errSlow = errors.New("the client did not read the page in time")

// pacer bounds the cost of requests for others. Probes are always answered. Other requests
// are limited in three ways: pages being made, pages being sent, and their bytes in memory.
// When there are too many, the one with the slowest reader ends.
type pacer struct {
	next   http.Handler
	making *semaphore.Weighted
	held   *semaphore.Weighted

	mu   sync.Mutex
	open map[*response]struct{}
}

func newPacer(next http.Handler) *pacer {
	return &pacer{
		next: next, making: semaphore.NewWeighted(makers()), held: semaphore.NewWeighted(heldAtOnce), open: map[*response]struct{}{},
	}
}

// makers returns the number of pages that may be made at a time. Each takes a processor,
// and half of the processors are left to the process's main work.
func makers() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

// thrifty is a listener with small send buffers for unread data.
type thrifty struct{ net.Listener }

// Accept implements [net.Listener].
func (l thrifty) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(socketBytes) // the default takes some MiB
	}
	return conn, err
}

// ServeHTTP implements [http.Handler].
func (p *pacer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(chunkTime)) // for responses that are not paced
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	if slices.Contains(probes, r.URL.Path) {
		p.next.ServeHTTP(w, r)
		return
	}
	one := &response{ResponseWriter: w, control: control, pacer: p}
	if !p.await(one) {
		busy(w)
		return
	}
	defer p.leave(one)
	if !acquire(p.making, 1) {
		busy(w)
		return
	}
	defer p.making.Release(1)
	p.next.ServeHTTP(one, r)
}

// probes are asked by supervisors that restart a process without an answer.
var probes = []string{"/livez", "/readyz"}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusServiceUnavailable, "too many requests at a time, or their answers are not read; try again, and find the callers")
}

// acquire waits for a share, at most for chunkTime.
func acquire(from *semaphore.Weighted, n int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), chunkTime)
	defer cancel()
	return from.Acquire(ctx, n) == nil
}

// await waits for a place for a response, at most for chunkTime.
func (p *pacer) await(one *response) bool {
	again := time.NewTicker(placeTime)
	defer again.Stop()
	for end := time.Now().Add(chunkTime); !p.enter(one); <-again.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// placeTime is the interval between checks for a free place.
const placeTime = 20 * time.Millisecond

// enter counts a response. If there are too many, it ends another one, whose reader keeps
// it waiting; it fails if all are being made.
func (p *pacer) enter(one *response) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) >= responsesAtOnce {
		slowest := p.slowest()
		if slowest == nil {
			return false
		}
		delete(p.open, slowest)
		_ = slowest.control.SetWriteDeadline(time.Now())
	}
	p.open[one] = struct{}{}
	return true
}

// slowest returns the response that has been waiting for its reader for the longest time;
// nil if none waits.
func (p *pacer) slowest() (found *response) {
	for one := range p.open {
		if !one.blocked.IsZero() && (found == nil || one.blocked.Before(found.blocked)) {
			found = one
		}
	}
	return found
}

func (p *pacer) leave(one *response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, one)
}

// response is a page on its way.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	pacer   *pacer
	blocked time.Time // since when its reader has been awaited; guarded by pacer
}

// Unwrap serves [http.ResponseController].
func (one *response) Unwrap() http.ResponseWriter { return one.ResponseWriter }

// Write implements [io.Writer]. While the reader is awaited, others may make pages.
func (one *response) Write(b []byte) (int, error) {
	p := one.pacer
	if held := min(int64(len(b)), heldAtOnce); held > chunk {
		if !acquire(p.held, held) {
			panic(http.ErrAbortHandler) // otherwise the reader would mistake a part for the whole
		}
		defer p.held.Release(held)
	}
	p.making.Release(1)
	defer func() { _ = p.making.Acquire(context.Background(), 1) }() // every share is soon free again
	sent := 0
	for part := range slices.Chunk(b, chunk) {
		if !one.await() {
			return sent, errSlow
		}
		n, err := one.ResponseWriter.Write(part)
		if sent += n; err != nil {
			return sent, err
		}
	}
	one.taken()
	return sent, nil
}

// rest runs a wait in the midst of a response. Meanwhile others may make pages.
func rest(w http.ResponseWriter, wait func()) {
	if one, paced := w.(*response); paced {
		making := one.pacer.making
		making.Release(1)
		defer func() { _ = making.Acquire(context.Background(), 1) }() // as in Write
	}
	wait()
}

// await starts waiting for the reader, unless the response was ended for others.
func (one *response) await() bool {
	p := one.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.open[one]; !open {
		return false
	}
	one.blocked = time.Now()
	return one.control.SetWriteDeadline(one.blocked.Add(chunkTime)) == nil
}

// taken records that the reader is not awaited.
func (one *response) taken() {
	one.pacer.mu.Lock()
	defer one.pacer.mu.Unlock()
	one.blocked = time.Time{}
}

package feature_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// many is how many services a first state has that an Isthmus sends in three responses.
const many = 12_000

// However far apart Isthmuses are, the one that reads is live with all services of the
// other, and never with a part of them. Its restart takes nothing away, not for a moment.
// Neither does that of the one in between of three, which has nothing stored.
func TestFirstStateFromFarAwayIsWhole(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	files.WriteMany(many)
	first := start(t, files)
	first.AwaitSource("files", "live", "")
	far := []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond}
	for _, roundTrip := range []time.Duration{0, far[rand.N(len(far))]} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			text := readsAt(distant(t, first.XDS, roundTrip), loopback, t.TempDir())
			reader := startWith(t, text)
			reader.wholeOnceLive(0)
			reader.Stop()
			again := startWith(t, text)
			again.wholeOnceLive(many)
			again.Stop()
		})
	}
	t.Run("three", func(t *testing.T) {
		way := distant(t, first.XDS, 150*time.Millisecond)
		second := startWith(t, readsAt(way, loopback, ""))
		third := startWith(t, readsAt(distant(t, second.XDS, 150*time.Millisecond), loopback, ""))
		third.wholeOnceLive(0)
		second.Stop()
		third.AwaitSource("upstream", "stale", "")
		startWith(t, readsAt(way, second.XDS, ""))
		third.wholeOnceLive(many)
	})
}

// WriteMany makes the registry have so many services.
func (r *registry) WriteMany(n int) {
	r.t.Helper()
	list := make([]any, n)
	for i := range list {
		list[i] = service{Host: fmt.Sprintf("s%05d.example", i), Endpoints: []string{"{address: 10.0.0.1}"}}
	}
	r.Write("many.yaml", list...)
}

// readsAt is the configuration of an Isthmus that reads another, and keeps what it has in
// a folder, if there is one.
func readsAt(other, listen, dir string) string {
	text := fmt.Sprintf("sources:\n- name: upstream\n  xds: {address: %q}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n", other, listen, loopback)
	if dir != "" {
		text += fmt.Sprintf("store: {dataDir: %q}\n", dir)
	}
	return text
}

// wholeOnceLive waits until the source is live with a listing of this process. Then it has
// all services, and before never fewer than it began with.
func (i *isthmus) wholeOnceLive(before int) {
	i.t.Helper()
	await(i.t, "the source to be live", func() error {
		s := i.Source("upstream")
		switch {
		case s.State != string(source.StateListing) && s.Services < before || s.Held > 0: // listing: nothing is restored yet
			i.t.Fatalf("it is %s with %d services and %d held, and began with %d", s.State, s.Services, s.Held, before)
		case s.State != string(source.StateLive):
			return fmt.Errorf("it is %s: %s", s.State, s.Reason)
		case s.Services != many:
			i.t.Fatalf("it is live with %d of %d services", s.Services, many)
		}
		return nil
	})
}

// distant returns an address by which another is reached, with a round trip of so long. It
// serves until the test ends.
func distant(t *testing.T, address string, roundTrip time.Duration) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address) //nolint:noctx // on this machine
			if err != nil {
				_ = near.Close()
				continue
			}
			mu.Lock()
			open[near], open[far] = true, true
			mu.Unlock()
			work.Go(func() { carry(near, far, roundTrip/2) })
			work.Go(func() { carry(far, near, roundTrip/2) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return listener.Addr().String()
}

// carry writes what it reads, so much later, until one side ends. Then it ends the other.
func carry(from, to net.Conn, later time.Duration) {
	type piece struct {
		text []byte
		at   time.Time
	}
	underWay := make(chan piece, 1<<12)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range underWay {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.text); err != nil {
				break
			}
		}
		_, _ = to.Close(), from.Close()
		for range underWay { // nobody reads it
		}
	})
	for {
		text := make([]byte, 32<<10)
		n, err := from.Read(text)
		underWay <- piece{text[:n], time.Now().Add(later)}
		if err != nil {
			break
		}
	}
	close(underWay)
	writing.Wait()
}

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// withDataDir has what was read survive on disk, and clients connect to a
// socket that has the same name after a restart.
func withDataDir(t *testing.T) setup {
	t.Helper()
	return setup{dataDir: t.TempDir(), listen: "unix://" + filepath.Join(t.TempDir(), "xds")}
}

// killAgainAndAgain kills the program while everything changes, and has it
// start from what it left on disk alone, the registry being out of reach. That
// must be whole, and no older than what was saved before. When the registry is
// back, the good client must end with exactly what it says.
func killAgainAndAgain(t *testing.T, r *room) string {
	rounds, random := size(8, 2), chance(0)
	for range rounds {
		r.awaitSaved(t)
		saved := r.registry.says()
		r.killInChurn(t, random)
		written := r.registry.says()
		bringBack := r.registry.hide(t)
		began := time.Now()
		r.serve(t)
		r.figures.ready = append(r.figures.ready, time.Since(began))
		r.mustHaveRestored(t, saved, written)
		bringBack()
		began = time.Now()
		r.good.Reconnect(true)
		r.good.awaitAll(written)
		r.figures.beside = append(r.figures.beside, time.Since(began))
	}
	return fmt.Sprintf("killed %d times while everything changed; beside: return of the client → it holds everything; /readyz: start → ready", rounds)
}

// awaitSaved waits until everything written is served and on disk.
func (r *room) awaitSaved(t *testing.T) {
	t.Helper()
	r.good.awaitAll(r.registry.says())
	await(t, "everything to be saved", func() error {
		m := r.server.metrics(t)
		// The client may hold what the program has not read again since its restart.
		if up := m.Sum("isthmus_source_up"); up != 1 {
			return fmt.Errorf("%v sources are live", up)
		}
		if saved, all := m.Sum("isthmus_store_saved_revision"), m.Sum("isthmus_store_revision"); saved != all {
			return fmt.Errorf("revision %v of %v is", saved, all)
		}
		return nil
	})
}

// killInChurn kills the program at a random time of many changes.
func (r *room) killInChurn(t *testing.T, random *rand.Rand) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := r.churn(ctx, until.Patience)
		over <- err
	}()
	fatal := time.NewTimer(50*time.Millisecond + time.Duration(random.Int64N(int64(400*time.Millisecond))))
	<-fatal.C
	r.figures.peak = max(r.figures.peak, r.server.peak(t))
	r.server.kill()
	stop()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// mustHaveRestored has a new client ask for everything, and compares that with
// what was on disk for certain and what can have been at most.
func (r *room) mustHaveRestored(t *testing.T, saved, written map[string]uint32) {
	t.Helper()
	if log := r.server.log.tail(); !strings.Contains(log, "the last known good is restored") || strings.Contains(log, "cannot be used") {
		t.Errorf("what is on disk was not restored; the log says\n%s", log)
	}
	witness := &good{xdsclient.NewDelta(t, r.dial(t), xdsclient.Config{
		Node: xdsclient.Node("witness", "shop", "envoy"), Follow: xdsclient.FollowClusters,
	})}
	defer witness.Close()
	witness.Subscribe(xdsclient.CDS, "*")
	witness.AwaitNone(func(s *xdsclient.State) string {
		for name := range saved {
			if weight, n := held(s, name); n != endpoints || weight < saved[name] || weight > written[name] {
				return fmt.Sprintf("%s, restored with %d endpoints (not %d) and a weight of %d (%d to %d)", name, n, endpoints, weight, saved[name], written[name])
			}
		}
		return ""
	})
}

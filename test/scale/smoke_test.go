package scale

import (
	"testing"
	"time"
)

// A small mesh goes through everything that the benchmarks measure: it is read
// from files, a change arrives, it is saved and restored, and a client that
// comes back with what it holds is sent nothing.
func TestSmallMesh(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, heavyTailed(300, 8000, 4500), full)
	dir, held := saveMesh(t, r)

	s := startServer(t, program(t), r, dir)
	f := newFleet(s, 1)
	f.connect(t, all(envoyScript(true, r.services(), held)))
	s.await(t, "reading of the files", func() bool { return s.live(t) })
	if m := s.metrics(t); m.Sum("isthmus_push_resources_total") != 0 {
		t.Errorf("%v resources are sent to a client that holds them", m.Sum("isthmus_push_resources_total"))
	}
	for n := range 3 {
		f.follow(t, 1, func() time.Time { return r.change(t, n) })
	}
	f.verify(t)
	if m := s.metrics(t); m.Sum("isthmus_push_resources_total") != 3 || m.Sum("isthmus_catalog_endpoints") != 8000 {
		t.Errorf("%v resources are sent for 3 changes, and %v of 8000 endpoints are there",
			m.Sum("isthmus_push_resources_total"), m.Sum("isthmus_catalog_endpoints"))
	}
	f.disconnect(t)
}

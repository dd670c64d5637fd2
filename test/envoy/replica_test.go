package envoy_test

import (
	"fmt"
	"testing"
	"time"
)

// TestReplicasTakeOverFromEachOther has two Isthmuses read the same folder. The
// one that Envoy is connected to goes, in turn, and one service grows meanwhile:
// that is all that the other one sends.
func TestReplicasTakeOverFromEachOther(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		s := openStore(t, newMesh(t), delta, 2, "")
		replaced, version := s.replaced(), s.clustersVersion()
		var took []time.Duration
		for round, leave := range []func(*isthmus){s.kill, s.kill, s.freeze, s.terminate} {
			from := s.AwaitConnection()
			to := s.other(from)
			before := to.Metric("isthmus_push_resources_total", "")
			began := time.Now()
			leave(from)
			s.members[round%len(s.members)].grow()
			s.AwaitActive("what changed while the other took over")
			took = append(took, time.Since(began))
			if at := s.AwaitConnection(); at != to {
				t.Fatalf("Envoy is connected to %s, not to %s", at.Name, to.Name)
			}
			if sent := to.Metric("isthmus_push_resources_total", "") - before; delta && sent != 1 {
				t.Errorf("round %d: %s sent %.0f resources; only one was not known", round, to.Name, sent)
			}
			if from.Running() {
				t.Fatalf("%s still runs", from.Name)
			}
			s.comeBack(from)
		}
		if n := s.replaced(); n != replaced {
			t.Errorf("Envoy has replaced %d clusters that did not change", n-replaced)
		}
		if now := s.clustersVersion(); !delta && now != version {
			t.Errorf("the clusters, which did not change, were of version %d and are of %d", version, now)
		}
		s.load.MustNotHaveFailed()
		figures.add(t, "a change while one of two replicas goes is active: %s", spread(took))
	})
}

func (s *store) other(than *isthmus) *isthmus {
	if s.Isthmuses[0] == than {
		return s.Isthmuses[1]
	}
	return s.Isthmuses[0]
}

func (s *store) kill(i *isthmus) { i.Kill() }

func (s *store) freeze(i *isthmus) {
	if err := i.Freeze(); err != nil {
		s.Fatal(err)
	}
}

func (s *store) terminate(i *isthmus) {
	if err := i.Terminate(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// comeBack starts an Isthmus again, or lets it go on.
func (s *store) comeBack(i *isthmus) {
	s.Helper()
	if i.Frozen() {
		s.thaw(i)
	} else {
		i.Serve()
	}
	// Else Envoy may come back before it has read what changed while it stood still, or
	// was gone, and is sent that twice: as it was, and as it is.
	await(s, i.Name+" to read what changed meanwhile", func() error {
		const endpoints = "isthmus_catalog_endpoints"
		if has, is := i.Metric(endpoints, ""), s.other(i).Metric(endpoints, ""); has != is {
			return fmt.Errorf("it has %.0f endpoints, the other %.0f", has, is)
		}
		return nil
	})
}

// thaw lets an Isthmus go on, until it knows that Envoy has left.
func (s *store) thaw(i *isthmus) {
	s.Helper()
	if err := i.Thaw(); err != nil {
		s.Fatal(err)
	}
	await(s, i.Name+" to find out that Envoy has left", func() error {
		clients, err := i.clients()
		if err == nil && len(clients) > 0 {
			err = fmt.Errorf("it still knows %s", clients[0].ID)
		}
		return err
	})
}

// clustersVersion is a hash of the version that all clusters were last sent as.
func (s *store) clustersVersion() uint64 {
	s.Helper()
	const name = "cluster_manager.cds.version"
	stats, err := s.proxy.Stats(s.Context(), "^"+name+"$")
	if err != nil || stats[name] == 0 {
		s.Fatalf("Envoy does not say the version of its clusters: %v", err)
	}
	return stats[name]
}

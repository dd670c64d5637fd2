package mcp_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
)

// holds has a sink take one response, which brings it what there is.
func holds(t *testing.T, r *rig, s *mcpsink.Sink, collection string, incremental bool) *wire.Resources {
	t.Helper()
	m := s.Receive()
	s.ACK(m, incremental)
	if got, want := s.Of(collection).Contents, r.want(collection); m.GetCollection() != collection || !maps.Equal(got, want) {
		t.Errorf("the sink holds %v of %s, and should hold %v of %s", got, m.GetCollection(), want, collection)
	}
	return m
}

func TestFullState(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1", "a/two", "2")
	s := r.sink("pilot")
	s.Ask(entries, false)
	if m := holds(t, r, s, entries, false); m.GetIncremental() || m.GetSystemVersionInfo() == "" || m.GetNonce() == "" {
		t.Errorf("the first response is %v", m)
	}
	r.put(entries, "a/two", "another")
	holds(t, r, s, entries, false)
	r.remove(entries, "a/one")
	if m := holds(t, r, s, entries, false); len(m.GetRemovedResources()) > 0 {
		t.Errorf("a full state names what is removed: %v", m.GetRemovedResources())
	}
	r.remove(entries, "a/two")
	holds(t, r, s, entries, false)
}

// Every collection is answered, whether anything is in it or nobody serves it.
func TestEveryCollectionIsAnswered(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1")
	s := r.sink("pilot")
	asked := map[string]bool{entries: true, sidecars: true, "istio/policy/v1beta1/rules": true, "istio/mesh/v1alpha1/MeshConfig": true}
	for collection := range asked {
		s.Ask(collection, false)
	}
	for range len(asked) {
		m := s.Receive()
		if !asked[m.GetCollection()] {
			t.Fatalf("%s is answered twice, or was not asked for", m.GetCollection())
		}
		delete(asked, m.GetCollection())
		s.ACK(m, false)
	}
	r.put(entries, "a/one", "2")
	holds(t, r, s, entries, false) // and the ACK of what nobody serves did no harm
}

// The versions are of the content: what is as it was has the version that it had.
func TestVersionsAreOfContent(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "A")
	s := r.sink("pilot")
	s.Ask(entries, false)
	first := holds(t, r, s, entries, false)
	r.put(entries, "a/one", "B")
	second := holds(t, r, s, entries, false)
	r.put(entries, "a/one", "A")
	third := holds(t, r, s, entries, false)
	if first.GetSystemVersionInfo() == second.GetSystemVersionInfo() || first.GetSystemVersionInfo() != third.GetSystemVersionInfo() {
		t.Errorf("the versions of A, B and A are %s, %s and %s", first.GetSystemVersionInfo(), second.GetSystemVersionInfo(), third.GetSystemVersionInfo())
	}
	version := first.GetResources()[0].GetMetadata().GetVersion()
	sum := world.VersionOfSet(func(yield func(string, world.Version) bool) {
		v, _ := world.ParseVersion(version)
		yield("a/one", v)
	})
	if sum.String() != first.GetSystemVersionInfo() {
		t.Errorf("the version of the whole is %s, and that of what is in it %s", first.GetSystemVersionInfo(), sum)
	}
}

// However much changes while a sink is busy, it is sent the newest when it is ready,
// and nothing before (defect 9 of the reference implementation: a request without a
// nonce counted as the answer to the response that was on its way).
func TestOneResponseIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/one", "1")
		s := r.sink("pilot")
		s.Ask(entries, false)
		first := s.Receive()
		for _, content := range []string{"2", "3", "4"} {
			r.put(entries, "a/one", content)
			s.Ask(entries, false) // no answer
			s.Send(&wire.RequestResources{Collection: entries, ResponseNonce: "17"})
			s.Send(&wire.RequestResources{Collection: entries, ResponseNonce: "other"})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.Pending() {
			t.Fatalf("%v came before the answer", s.Receive())
		}
		s.ACK(first, false)
		if m := s.Receive(); len(m.GetResources()) != 1 || string(m.GetResources()[0].GetBody().GetValue()) != "4" {
			t.Errorf("then %v came", m)
		} else {
			s.ACK(first, false) // an old nonce
			s.ACK(m, false)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.Pending() {
			t.Errorf("%v came, though nothing changed", s.Receive())
		}
	})
}

// A state that was NACKed is not sent again. One that has changed is.
func TestNACKedStateIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/one", "bad")
		s := r.sink("pilot")
		s.Ask(entries, false)
		s.NACK(s.Receive(), false, "no such thing")
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.Pending() {
			t.Fatalf("%v came again", s.Receive())
		}
		got, _ := r.status("pilot", entries)
		if got.State != session.NACKed || got.Reason != "no such thing" || got.NACKs != 1 || got.Responses != 1 || time.Since(got.LastNACK) != time.Hour {
			t.Errorf("it stands as %+v", got)
		}
		r.put(entries, "a/one", "good")
		holds(t, r, s, entries, false)
		synctest.Wait()
		if got, _ := r.status("pilot", entries); got.State != session.ACKed || got.NACKReason != "no such thing" || got.ACKs != 1 {
			t.Errorf("then it stands as %+v", got)
		}
	})
}

// Whole collections wait for the end of a burst, removals as well. Increments do not.
func TestDebounceIsOfWholeCollections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{debounce: world.Debounce{Quiet: time.Second, Max: 10 * time.Second}})
		defer r.stop()
		r.put(entries, "a/one", "1", "a/two", "1")
		full, quick := r.sink("full"), r.sink("quick")
		full.Ask(entries, false)
		holds(t, r, full, entries, false)
		quick.Ask(entries, true)
		holds(t, r, quick, entries, true)
		begun := time.Now()
		for range 5 {
			r.put(entries, "a/one", time.Now().String())
			holds(t, r, quick, entries, true)
			time.Sleep(time.Second / 2)
		}
		r.remove(entries, "a/two")
		holds(t, r, quick, entries, true)
		synctest.Wait()
		if full.Pending() {
			t.Fatal("the full state came during the burst")
		}
		holds(t, r, full, entries, false)
		if took := time.Since(begun); took != 3500*time.Millisecond {
			t.Errorf("the full state came after %s", took)
		}
	})
}

// A full state deletes what is not in it, so it waits for every source.
func TestFullStateWaitsForEverySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{incomplete: true})
		defer r.stop()
		r.put(entries, "a/one", "1")
		full, quick := r.sink("full"), r.sink("quick")
		full.Ask(entries, false)
		quick.Ask(entries, true)
		if m := holds(t, r, quick, entries, true); !m.GetIncremental() {
			t.Error("a sink that takes increments was sent a full state that may lack something")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if full.Pending() {
			t.Fatalf("%v came", full.Receive())
		}
		if got, _ := r.status("full", entries); got.Reason == "" {
			t.Errorf("it stands as %+v", got)
		}
		r.finish()
		holds(t, r, full, entries, false)
	})
}

// A full state that no message has room for is not sent to a sink that takes nothing
// else, and its other collections go on.
func TestFullStateThatIsTooLargeIsShown(t *testing.T) {
	r := newRig(t, setup{largest: 1000})
	r.put(entries, "a/one", string(make([]byte, 600)), "a/two", string(make([]byte, 600)))
	r.put(sidecars, "a/one", "1")
	r.dispatched()
	s := r.sink("pilot")
	s.Ask(entries, false)
	s.Ask(sidecars, false)
	holds(t, r, s, sidecars, false)
	var got session.TypeStatus
	r.await("reason", func() bool {
		got, _ = r.status("pilot", entries)
		return got.Reason != ""
	})
	if got.State != session.NACKed || got.Responses != 0 {
		t.Errorf("it stands as %+v", got)
	}
	r.remove(entries, "a/one")
	holds(t, r, s, entries, false)
	if got, _ := r.status("pilot", entries); got.State == session.NACKed {
		t.Errorf("then it stands as %+v", got)
	}
}

// A sink that changes its mind is sent in increments what was too large.
func TestStateThatIsTooLargeGoesAsIncrements(t *testing.T) {
	for name, first := range map[string]bool{"from the first": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{largest: 1000})
			r.put(entries, "a/one", string(make([]byte, 600)), "a/two", string(make([]byte, 600)), "a/three", string(make([]byte, 600)))
			s := r.sink("pilot")
			s.Ask(entries, first)
			if !first {
				r.await("reason", func() bool { got, _ := r.status("pilot", entries); return got.Reason != "" })
				s.Ask(entries, true)
			}
			for !maps.Equal(s.Of(entries).Contents, r.want(entries)) {
				m := s.Receive()
				if !m.GetIncremental() || len(m.GetResources()) > 1 {
					t.Fatalf("%d resources came, incremental: %t", len(m.GetResources()), m.GetIncremental())
				}
				s.ACK(m, true)
			}
		})
	}
}

// One resource that no message has room for keeps no other back.
func TestResourceThatIsTooLargeIsLeftOut(t *testing.T) {
	r := newRig(t, setup{largest: 1000})
	r.put(entries, "a/one", "1")
	s := r.sink("pilot")
	s.Ask(entries, true)
	holds(t, r, s, entries, true)
	r.put(entries, "a/huge", string(make([]byte, 2000)), "a/two", "2")
	m := s.Receive()
	s.ACK(m, true)
	if got := s.Of(entries).Names(); len(got) != 2 {
		t.Errorf("it holds %v", got)
	}
	if got, _ := r.status("pilot", entries); got.State != session.NACKed || got.Reason == "" {
		t.Errorf("it stands as %+v", got)
	}
	r.put(entries, "a/huge", "small")
	holds(t, r, s, entries, true)
	r.await("ACK", func() bool { got, _ := r.status("pilot", entries); return got.State == session.ACKed })
}

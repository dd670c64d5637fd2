package mcp_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The first response replaces what the sink may have. After that it is sent what
// changed, and removals.
func TestIncrements(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1", "a/two", "2")
	s := r.sink("pilot")
	s.Ask(entries, true)
	holds(t, r, s, entries, true)
	r.put(entries, "a/three", "3")
	if m := holds(t, r, s, entries, true); !m.GetIncremental() || len(m.GetResources()) != 1 {
		t.Errorf("for one change %v came", m)
	}
	r.remove(entries, "a/one", "a/two")
	m := holds(t, r, s, entries, true)
	slices.Sort(m.GetRemovedResources())
	if !m.GetIncremental() || len(m.GetResources()) != 0 || !slices.Equal(m.GetRemovedResources(), []string{"a/one", "a/two"}) {
		t.Errorf("for removals alone %v came", m)
	}
}

// A sink that comes back is sent the difference, with what went while it was away
// (defect 1 of the reference implementation, which sends everything as added and
// removes nothing).
func TestResumeBringsTheDifference(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/same", "1", "a/other", "2", "a/gone", "3")
	before := r.sink("before")
	before.Ask(entries, true)
	holds(t, r, before, entries, true)
	r.put(entries, "a/other", "another", "a/new", "4")
	r.remove(entries, "a/gone")
	r.dispatched()
	after := r.sink("after")
	after.Hold(entries, before.Of(entries))
	after.Ask(entries, true)
	m := holds(t, r, after, entries, true)
	var names []string
	for _, res := range m.GetResources() {
		names = append(names, res.GetMetadata().GetName())
	}
	slices.Sort(names)
	if !m.GetIncremental() || !slices.Equal(names, []string{"a/new", "a/other"}) || !slices.Equal(m.GetRemovedResources(), []string{"a/gone"}) {
		t.Errorf("it was sent %v, and %v are removed", names, m.GetRemovedResources())
	}
	again := r.sink("again")
	again.Hold(entries, after.Of(entries))
	again.Ask(entries, true)
	if m := holds(t, r, again, entries, true); !m.GetIncremental() || len(m.GetResources())+len(m.GetRemovedResources()) != 0 || m.GetSystemVersionInfo() != after.Of(entries).Version {
		t.Errorf("to one that lacks nothing %v came", m)
	}
}

// A sink that takes no increments gets full states, whatever it says it holds.
func TestResumeOfFullStates(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1")
	s := r.sink("pilot")
	s.Ask(entries, true)
	s.Of(entries).Versions = map[string]string{"a/old": "1"}
	s.Ask(sidecars, false)
	for range 2 {
		m := s.Receive()
		if m.GetIncremental() {
			t.Errorf("%v is an increment", m)
		}
		s.ACK(m, false)
	}
}

// What a sink says it holds is not taken from it before every source has been listed.
func TestResumeWaitsForEverySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{incomplete: true})
		defer r.stop()
		r.put(entries, "a/one", "1")
		s := r.sink("pilot")
		s.Of(entries).Versions, s.Of(entries).Contents = map[string]string{"a/late": "1", "a/gone": "1"}, map[string]string{}
		s.Ask(entries, true)
		m := s.Receive()
		if len(m.GetRemovedResources()) > 0 {
			t.Errorf("%v are removed before they may be listed", m.GetRemovedResources())
		}
		s.ACK(m, true)
		r.put(entries, "a/late", "2")
		m = s.Receive()
		s.ACK(m, true)
		r.finish()
		holds(t, r, s, entries, true)
	})
}

// Increments have to be agreed each time: as soon as a sink does not, it is sent the
// full state, and increments once it does again.
func TestIncrementsAreAgreedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/one", "1", "a/two", "2")
		s := r.sink("pilot")
		s.Ask(entries, true)
		holds(t, r, s, entries, true)
		next := func(content string, incremental, agrees bool) {
			t.Helper()
			synctest.Wait()
			if s.Pending() {
				t.Fatalf("%v came, and nothing changed", s.Receive())
			}
			r.put(entries, "a/one", content)
			if m := holds(t, r, s, entries, agrees); m.GetIncremental() != incremental {
				t.Errorf("%s: incremental is %t", content, m.GetIncremental())
			}
		}
		next("2", true, false)
		next("3", false, false)
		next("4", false, true)
		next("5", true, true)
		s.Ask(entries, false) // a request that changes this alone
		next("6", false, false)
		s.Ask(entries, true)
		next("7", true, true)
	})
}

// Of resources that were NACKed together the good ones arrive, and the bad one does
// not come again until it has changed.
func TestGoodNeighboursArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/zero", "0", "a/gone", "0")
		s := r.sink("pilot")
		s.Ask(entries, true)
		holds(t, r, s, entries, true)
		put := map[string]string{}
		for i := range 9 {
			put[fmt.Sprintf("a/%d", i)] = "good"
		}
		put["a/4"] = "bad"
		r.change(entries, put, []string{"a/gone"})
		rounds := 0
		for synctest.Wait(); s.Pending(); synctest.Wait() {
			m := s.Receive()
			if !m.GetIncremental() {
				t.Fatal("a full state came to a sink that takes increments")
			}
			bad := false
			for _, res := range m.GetResources() {
				bad = bad || string(res.GetBody().GetValue()) == "bad"
			}
			if bad {
				s.NACK(m, true, "a/4 is bad")
			} else {
				s.ACK(m, true)
			}
			if rounds++; rounds > 20 {
				t.Fatal("it goes on and on")
			}
		}
		want := r.want(entries)
		delete(want, "a/4")
		if got := s.Of(entries).Contents; !maps.Equal(got, want) {
			t.Errorf("it holds %v", got)
		}
		if got, _ := r.status("pilot", entries); got.NACKReason != "a/4 is bad" || got.NACKs < 2 {
			t.Errorf("it stands as %+v", got)
		}
		r.put(entries, "a/4", "good")
		holds(t, r, s, entries, true)
	})
}

// Pilot 1.4 takes back its consent to increments with each NACK. It is sent the full
// state then, once, for it may make something of that.
func TestNACKThatTakesBackTheConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/zero", "0", "a/gone", "0")
		s := r.sink("pilot")
		s.Ask(entries, true)
		holds(t, r, s, entries, true)
		r.change(entries, map[string]string{"a/one": "1", "a/two": "bad"}, []string{"a/gone"})
		s.NACK(s.Receive(), false, "no")
		m := s.Receive()
		if m.GetIncremental() || len(m.GetResources()) != 3 {
			t.Fatalf("after the NACK %v came", m)
		}
		s.NACK(m, false, "no")
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.Pending() {
			t.Fatalf("%v came again", s.Receive())
		}
		r.put(entries, "a/two", "good")
		if m := holds(t, r, s, entries, true); m.GetIncremental() {
			t.Error("an increment came, though it was not agreed to")
		}
		r.put(entries, "a/two", "better")
		if m := holds(t, r, s, entries, true); !m.GetIncremental() {
			t.Error("a full state came, though increments are agreed to")
		}
	})
}

// A sink that NACKs its first state may still take what is good of it in increments.
func TestFirstStateIsNACKed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/one", "1", "a/two", "bad", "a/three", "3")
		s := r.sink("pilot")
		s.Ask(entries, true)
		rounds := 0
		for synctest.Wait(); s.Pending(); synctest.Wait() {
			m := s.Receive()
			bad := false
			for _, res := range m.GetResources() {
				bad = bad || string(res.GetBody().GetValue()) == "bad"
			}
			if bad {
				s.NACK(m, true, "bad")
			} else {
				s.ACK(m, true)
			}
			if rounds++; rounds > 10 {
				t.Fatal("it goes on and on")
			}
		}
		if got := s.Of(entries).Names(); !slices.Equal(got, []string{"a/one", "a/three"}) {
			t.Errorf("it holds %v", got)
		}
	})
}

// What one sink does not answer, another is sent.
func TestSlowSinkKeepsNobodyBack(t *testing.T) {
	r := newRig(t, setup{})
	r.put(entries, "a/one", "1")
	slow, quick := r.sink("slow"), r.sink("quick")
	slow.Ask(entries, true)
	first := slow.Receive()
	quick.Ask(entries, true)
	holds(t, r, quick, entries, true)
	for i := range 100 {
		r.put(entries, fmt.Sprintf("a/%d", i), "1")
		for !maps.Equal(quick.Of(entries).Contents, r.want(entries)) {
			quick.ACK(quick.Receive(), true)
		}
	}
	slow.ACK(first, true)
	holds(t, r, slow, entries, true)
	if got, _ := r.status("slow", entries); got.Responses != 2 {
		t.Errorf("it was sent %d responses", got.Responses)
	}
}

// What was new in a full state that was NACKed was not at fault if the state had
// something bad from before. A sink that takes increments from then on is sent it.
func TestInnocentOfNACKedStatesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		r.put(entries, "a/zero", "0", "a/gone", "0")
		s := r.sink("pilot")
		s.Ask(entries, false)
		holds(t, r, s, entries, false)
		r.put(entries, "a/bad", "bad")
		s.NACK(s.Receive(), false, "bad")
		r.put(entries, "a/new", "1")
		s.NACK(s.Receive(), false, "bad")
		r.remove(entries, "a/gone")
		s.NACK(s.Receive(), true, "bad")
		for synctest.Wait(); s.Pending(); synctest.Wait() {
			if m := s.Receive(); slices.ContainsFunc(m.GetResources(), isBad) {
				s.NACK(m, true, "bad")
			} else {
				s.ACK(m, true)
			}
		}
		if got := s.Of(entries).Names(); !slices.Equal(got, []string{"a/new", "a/zero"}) {
			t.Errorf("it holds %v", got)
		}
	})
}

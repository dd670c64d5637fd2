package client_test

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/client"
)

// step is something that happens to a server.
type step struct {
	What    string
	Changes contents
	After   time.Duration
}

func drawStep(t *rapid.T) step {
	return step{
		What: rapid.SampledFrom([]string{"commit", "commit", "commit", "restart", "forget", "unprimed", "primed"}).Draw(t, "what"),
		Changes: rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.SampledFrom([]string{"", "1", "2"}), 1, 6).
			Draw(t, "changes"),
		After: rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, time.Minute}).Draw(t, "after"),
	}
}

func (s step) happen(server *server) {
	switch s.What {
	case "commit":
		server.commit(s.Changes)
	case "restart":
		server.restart(s.Changes)
	case "forget":
		server.forget()
	case "unprimed", "primed":
		server.step(func() { server.unprimed = s.What == "unprimed" })
	}
}

func drawFault(t *rapid.T) fault {
	return fault{
		After: rapid.IntRange(0, 8).Draw(t, "after"),
		Code: rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.Unavailable, codes.ResourceExhausted, codes.FailedPrecondition, codes.Internal}).
			Draw(t, "code"),
	}
}

// Whatever a server goes through, and however it divides its messages: each view of a
// replica is a committed revision, no view is older than the one before, and the last one is
// the newest.
func TestAReplicaIsAlwaysACommittedRevision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newServer(contents{"a": "0", "b": "0", "c": "0"})
		s.pieces = rapid.SliceOfN(rapid.IntRange(1, 4), 1, 5).Draw(rt, "pieces")
		s.faults = rapid.SliceOfN(rapid.Custom(drawFault), 0, 10).Draw(rt, "faults")
		s.blind, s.chatty = rapid.Bool().Draw(rt, "blind"), rapid.Bool().Draw(rt, "chatty")
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 30).Draw(rt, "steps")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = observed(t, s, steps) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// observed returns what is wrong with the views of a replica during the steps.
func observed(t *testing.T, s *server, steps []step) string {
	t.Helper()
	replica := client.New(serve(t, s), nil)
	run(t, replica)
	o := observer{server: s, folded: contents{}}
	stop := make(chan struct{})
	var observing sync.WaitGroup
	observing.Go(func() {
		for {
			changed := replica.Changed()
			o.look(replica.View())
			select {
			case <-changed:
			case <-stop:
				return
			}
		}
	})
	for _, step := range steps {
		step.happen(s)
		time.Sleep(step.After)
	}
	s.step(func() { s.unprimed = false })
	time.Sleep(time.Hour)
	synctest.Wait()
	close(stop)
	observing.Wait()
	if got, want := o.folded, s.states[s.now]; !maps.Equal(got, want) && o.wrong == "" {
		_, why := replica.Known()
		o.wrong = fmt.Sprintf("in the end there is %v, want %v; why: %v", got, want, why)
	}
	return o.wrong
}

// observer is a reader of views.
type observer struct {
	server *server
	last   *client.View
	at     moment   // of the last view
	folded contents // the last view, of the changes between views
	wrong  string   // the first mistake
}

func (o *observer) look(view *client.View) {
	if view == nil || view == o.last || o.wrong != "" {
		if view == nil && o.last != nil {
			o.wrong = "the view is unknown again"
		}
		return
	}
	for change := range view.Since(o.last) {
		if change.After == nil {
			delete(o.folded, change.Before.GetRef().GetName())
			continue
		}
		o.folded[change.After.GetRef().GetName()] = change.After.GetService().GetHosts()[0]
	}
	got := contentsOf(view)
	if !maps.Equal(o.folded, got) {
		o.wrong = fmt.Sprintf("the changes lead to %v, and the view is %v", o.folded, got)
	}
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	at := momentOf(view.At())
	switch before := o.at; {
	case o.server.blind && !o.committed(got):
		o.wrong = fmt.Sprintf("%v was never committed", got)
	case o.server.blind:
	case !maps.Equal(got, o.server.states[at]):
		o.wrong = fmt.Sprintf("at %v the view is %v, want %v", at, got, o.server.states[at])
	case at.epoch < before.epoch || at.epoch == before.epoch && at.revision < before.revision:
		o.wrong = "view " + strconv.FormatUint(at.revision, 10) + " is older than the one before"
	}
	o.last, o.at = view, at
}

func (o *observer) committed(c contents) bool {
	for _, state := range o.server.states {
		if maps.Equal(state, c) {
			return true
		}
	}
	return false
}

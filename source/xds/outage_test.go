package xds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/source"
)

// many has the peer serve so many services, and returns what is stored of them.
func (r *rig) many(n int) (lines []string) {
	for i := range n {
		r.serve(fmt.Sprintf("shop/s%02d", i), "10.0.0.1")
		lines = append(lines, fmt.Sprintf("shop/s%02d 10.0.0.1", i))
	}
	return lines
}

func held(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, line+" (held)")
	}
	return out
}

// A server that hangs keeps its connections, and nothing ends. That it does not answer
// pings shows it.
func TestHangIsFound(t *testing.T) {
	variants(t, func(r *rig) {
		all := r.many(3)
		r.mirror()
		r.freeze()
		r.pass(45 * time.Second)
		r.is(source.StateStale, "trying again")
		r.wants(all...)
		r.cut()
		r.thaw()
		r.pass(10 * time.Second)
		r.is(source.StateLive, "")
	})
}

// A connection may stay up, and take every byte, while nothing arrives. It is pinged 30 s after the last
// byte, or 310 s at a server that forbids more pings, and is lost 10 s later.
func TestMuteConnectionIsFoundByAPing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manner
		most time.Duration
	}{
		"pinged often":  {manner{}, 40 * time.Second},
		"pinged seldom": {manner{noPings: true}, 320 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, c.manner, func(r *rig) {
				r.many(2)
				r.mirror()
				r.pass(time.Hour) // a server without changes answers pings
				r.is(source.StateLive, "")
				r.serve("shop/s00", "10.0.0.9")
				r.pass(10 * time.Millisecond)
				r.wants("shop/s00 10.0.0.9", "shop/s01 10.0.0.1")
				r.muted.Store(true)
				r.pass(c.most - time.Second)
				r.is(source.StateLive, "")
				r.pass(time.Second)
				r.is(source.StateStale, "ping")
				r.pass(10 * time.Minute) // connections are made, and mute from the start
				r.is(source.StateStale, "")
				r.wants("shop/s00 10.0.0.9", "shop/s01 10.0.0.1")

				r.muted.Store(false)
				r.serve("shop/s00", "10.0.0.8")
				r.pass(time.Minute)
				r.is(source.StateLive, "")
				r.wants("shop/s00 10.0.0.8", "shop/s01 10.0.0.1")
			})
		})
	}
}

func TestServerThatRestartsEmptyIsHeld(t *testing.T) {
	variants(t, func(r *rig) {
		all := r.many(12)
		r.mirror()
		r.fail(status.Error(codes.Unavailable, "going away"))
		r.change(func() { r.failing, r.resources = nil, map[string]map[string]*anypb.Any{} })
		r.pass(10 * time.Second)
		r.is(source.StateHeld, "")
		r.wants(held(all)...)
		r.many(12)
		r.pass(10 * time.Second)
		r.is(source.StateLive, "")
		r.wants(all...)
	})
}

func TestDropThatLastsIsReleased(t *testing.T) {
	variants(t, func(r *rig) {
		r.many(12)
		r.mirror()
		r.cut()
		r.change(func() { r.resources = map[string]map[string]*anypb.Any{} })
		r.serve("shop/s01", "10.0.0.1")
		r.pass(10 * time.Second)
		r.is(source.StateHeld, "")
		r.pass(3 * time.Minute)
		r.is(source.StateLive, "")
		r.wants("shop/s01 10.0.0.1")
	})
}

// What a delta answer removes by name is deleted, however much it is.
func TestRemovalByNameIsNeverHeld(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		r.many(12)
		r.mirror()
		r.change(func() { r.resources = map[string]map[string]*anypb.Any{} })
		r.pass(time.Second)
		r.is(source.StateLive, "")
		r.wants()
	})
}

// A complete answer that lacks much is held, and ACKed all the same.
func TestCompleteAnswerThatLacksMuchIsHeld(t *testing.T) {
	bubble(t, manner{noDelta: true}, func(r *rig) {
		all := r.many(12)
		r.mirror()
		r.change(func() { r.resources = map[string]map[string]*anypb.Any{} })
		r.pass(time.Second)
		r.is(source.StateHeld, "")
		r.wants(held(all)...)
		if q := r.seen()[len(r.seen())-1]; len(r.nacks()) > 0 || q.nonce == "" {
			r.Errorf("the last request is %+v, NACKs are %q", q, r.nacks())
		}
		r.serve("shop/new", "10.0.3.1")
		r.pass(time.Second)
		r.wants(append(held(all), "shop/new 10.0.3.1")...)
	})
}

func TestFlappingServerLosesNothing(t *testing.T) {
	variants(t, func(r *rig) {
		all := r.many(12)
		r.mirror()
		for i := range 20 {
			r.cut()
			r.serve("shop/s00", fmt.Sprintf("10.0.0.%d", i+2))
			r.pass(time.Duration(i) * 300 * time.Millisecond)
			if got := strings.Count(r.stored(), "\n") + 1; got != len(all) || strings.Contains(r.stored(), "held") {
				r.Fatalf("after %d cuts there are %d services:\n%s", i+1, got, r.stored())
			}
		}
		r.pass(time.Minute)
		r.is(source.StateLive, "")
		r.wants(append(all[1:], "shop/s00 10.0.0.21")...)
	})
}

// Servers are silent until they are ready themselves. That is no empty registry, and no
// reason to take one for a server without delta.
func TestServerThatIsNotReadyIsNotEmpty(t *testing.T) {
	bubble(t, manner{unknown: []string{"ServiceEntry", "Sidecar", "WorkloadEntry", "WorkloadGroup"}}, func(r *rig) {
		all := r.many(3)
		r.mirror()
		r.pass(20 * time.Second)
		r.is(source.StateListing, "has not answered for "+newer)
		r.change(func() { r.unknown = nil })
		r.pass(20 * time.Second)
		r.is(source.StateLive, "")
		r.wants(all...)
		if q := r.seen()[len(r.seen())-1]; !q.delta {
			r.Errorf("it is read by %+v", q)
		}
	})
}

// A kind that a server does not answer for is not known, rather than empty.
func TestKindThatIsNotAnsweredStays(t *testing.T) {
	variants(t, func(r *rig) {
		r.many(2)
		r.put("Sidecar", "shop/default", sidecar("shop/default"))
		r.mirror()
		r.wants("shop/s00 10.0.0.1", "shop/s01 10.0.0.1", "Scope shop/default")
		r.stop()
		r.change(func() { r.unknown = []string{"Sidecar"} })
		r.mirror()
		r.pass(12 * time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/s00 10.0.0.1", "shop/s01 10.0.0.1", "Scope shop/default (stale)")
		r.rejects("Sidecar shop/default … does not answer for networking.istio.io/v1/Sidecar")
	})
}

// Some servers end connections that are pinged more than once in five minutes.
func TestServerThatBansPingsIsPingedSeldom(t *testing.T) {
	bubble(t, manner{noPings: true}, func(r *rig) {
		all := r.many(3)
		r.mirror()
		r.pass(10 * time.Minute)
		opened := r.opened
		r.pass(time.Hour)
		r.is(source.StateLive, "")
		r.wants(all...)
		if r.opened != opened {
			r.Errorf("%d streams were opened in an hour", r.opened-opened)
		}
	})
}

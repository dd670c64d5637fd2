package grpc_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// shares are what backends have of calls, by name, in points of a hundred.
type shares map[string]float64

func (s shares) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s %.1f ", name, s[name])
	}
	return strings.TrimSpace(b.String())
}

// sharesOf counts who answered calls, with errors among them.
func sharesOf(calls []call) shares {
	got := shares{}
	for _, c := range calls {
		got[c.by+c.err] += 100 / float64(len(calls))
	}
	return got
}

// within says who has not as much of the calls as he should, to so many points.
func (s shares) within(points float64, calls []call) error {
	if len(calls) == 0 {
		return fmt.Errorf("too few calls have ended")
	}
	got := sharesOf(calls)
	for name, is := range got {
		if math.Abs(is-s[name]) > points {
			return fmt.Errorf("of %d calls: %v", len(calls), got)
		}
	}
	for name, share := range s {
		if got[name] == 0 && share*float64(len(calls)) >= 500 { // of fewer than five expected there may be none
			return fmt.Errorf("%s has answered none of %d calls", name, len(calls))
		}
	}
	return nil
}

// exactly says who has not as much of the calls as he should: to 2 points each, and to half of
// the smaller share where versions divide the calls.
func (s shares) exactly(calls []call) error {
	if err := s.within(2, calls); err != nil {
		return err
	}
	want, got := s.ofVersions(), sharesOf(calls).ofVersions()
	for version, share := range want {
		if math.Abs(got[version]-share) > min(share, 100-share)/2 {
			return fmt.Errorf("of %d calls: %v", len(calls), got)
		}
	}
	return nil
}

// ofVersions are the shares of all backends of a version together.
func (s shares) ofVersions() shares {
	sums := shares{}
	for name, share := range s {
		sums[versionOf(name)] += share
	}
	return sums
}

// versionOf is the name of a backend without its number.
func versionOf(name string) string {
	version, _, _ := strings.Cut(name, "-")
	return version
}

// quick is the interval of calls of which the shares are looked at.
const quick = 5 * time.Millisecond

// TestWeightsDecideTheShares has endpoints differ in weight, which gRPC obeys for
// localities alone, and turns the weights round while calls are made.
func TestWeightsDecideTheShares(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one", "two", "three")
		weigh := func(w1, w2, w3 int) []endpoint {
			return []endpoint{{Backend: b[0], weight: w1}, {Backend: b[1], weight: w2}, {Backend: b[2], weight: w3}}
		}
		isthmus := newIsthmus(t)
		isthmus.WriteEndpoints(reviews, weigh(1, 2, 7)...)
		isthmus.Start()
		client := dialEvery(t, quick, impl, isthmus, reviews+":80")
		client.AwaitAnswers(reviews+":80", "one", "two", "three")
		client.AwaitShares(reviews+":80", shares{"one": 10, "two": 20, "three": 70})

		isthmus.WriteEndpoints(reviews, weigh(7, 2, 1)...)
		client.AwaitShares(reviews+":80", shares{"one": 70, "two": 20, "three": 10})
		client.MustNotHaveFailed(reviews + ":80")
	})
}

// TestWeightsHoldBesideRealLocalities has endpoints in two localities, one of which
// has endpoints of different weights first, and the other has them later.
func TestWeightsHoldBesideRealLocalities(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one", "two", "three", "four")
		weigh := func(w1, w2, w3, w4 int) []endpoint {
			return []endpoint{
				{b[0], w1, "eu/east", ""},
				{b[1], w2, "eu/east", ""},
				{b[2], w3, "eu/west", ""},
				{b[3], w4, "eu/west", ""},
			}
		}
		isthmus := newIsthmus(t)
		isthmus.WriteEndpoints(reviews, weigh(1, 4, 2, 2)...) // 5 in the east, 4 in the west
		isthmus.Start()
		client := dialEvery(t, quick, impl, isthmus, reviews+":80")
		client.AwaitAnswers(reviews+":80", "one", "two", "three", "four")
		client.AwaitShares(reviews+":80", shares{"one": 100. / 9, "two": 400. / 9, "three": 200. / 9, "four": 200. / 9})

		isthmus.WriteEndpoints(reviews, weigh(1, 1, 1, 7)...)
		client.AwaitShares(reviews+":80", shares{"one": 10, "two": 10, "three": 10, "four": 70})
		client.MustNotHaveFailed(reviews + ":80")
	})
}

package servicecenter

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// The registry's cache shows changes only when none has come for a moment. Under
// steady change its finds are tens of seconds old. Without its cache it reads its
// backend, which costs it more than twenty times as much. So each round finds some
// services directly: recently changed ones, and a few of the others in turn. The more
// of these differ from the cache, the more are found directly in the next round.
const (
	// fewDirect is the number of direct finds while nothing differs.
	fewDirect = 16
	// directShare is the divisor of poll that gives a round's time with direct finds:
	// the rest after it is no longer than poll.
	directShare = restAfter
	// directLeast is the divisor of poll that gives the least time for direct finds,
	// in a round that is already longer.
	directLeast = 16
	// directWithin bounds a direct find. A registry without its backend goes on to
	// answer from its cache, but is silent without it.
	directWithin = 2 * time.Second
)

// directRest bounds how long there is no direct find after a failed one.
var directRest = wait.Backoff{Min: 4 * time.Second, Max: time.Minute}

// direct is the answer of a direct find for a key, if it differs from the registry's
// cache.
type direct struct {
	rev       string
	instances []Instance
}

// directness limits direct finds.
type directness struct {
	most int           // keys in the next round
	at   Key           // the last key found in turn
	turn uint64        // counts direct finds
	cost time.Duration // of one key; zero while unknown
	due  time.Time     // before which there are none, after a failure
	lost int           // failures in a row
	wary bool          // missing instances do not count as gone

	hot          int     // how many of the last direct finds had changed recently
	fresh, turns float64 // recent share of finds with changes, for recently changed keys and for others
}

// findDirect finds some services without the registry's cache. A failure does not
// fail the round.
func (s *Source) findDirect(ctx context.Context) error {
	now, d := time.Now(), &s.state.directly
	if s.config.CacheOnly || now.Before(d.due) {
		return nil
	}
	all := chunks(s.state.asksDirect(d.limit(s.config.Poll, s.client.kept)), mostBytes, mostKeys)
	if len(all) == 0 {
		return nil
	}
	answers, err := s.client.findDirect(ctx, all[0])
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		d.failed(time.Since(now), len(all[0].asks))
		s.options.Log.Debug("services could not be found without the registry's cache", "err", err)
		return nil
	}
	d.lost = 0
	d.spent(time.Since(now), len(all[0].asks))
	if s.state.answerDirect(all[0].asks, answers) {
		s.options.Log.Warn("the registry's backend lacks most of the instances that the registry shows: they stay for as long as it shows them")
	}
	return nil
}

// findDirect asks the member in use only: the cached answers remain as a fallback.
func (c *client) findDirect(ctx context.Context, asked chunk) (answers []found, err error) {
	ctx, cancel := context.WithTimeout(ctx, directWithin)
	defer cancel()
	err = c.ask(ctx, request{
		what: "find the instances", method: http.MethodPost, path: []string{c.config.Project, "registry", "instances", "action"},
		query: "type=query&noCache=1", body: asked.body,
		read: func(body []byte) (err error) { answers, err = decodeFound(body, len(asked.asks)); return err },
	})
	return answers, err
}

// limit returns how many keys a round may find directly, after it has kept the
// registry busy for some time already.
func (d *directness) limit(poll, busy time.Duration) int {
	most := max(d.most, fewDirect)
	if d.cost > 0 {
		most = min(most, int(max(poll/directShare-busy, poll/directLeast)/d.cost))
	}
	return max(1, most)
}

// failed notes a failed find of some keys.
func (d *directness) failed(took time.Duration, keys int) {
	d.lost++
	d.most, d.due = fewDirect, time.Now().Add(directRest.After(d.lost, rand.Float64()))
	d.spent(took, keys)
}

// spent updates the cost of a key by a find, the latest counting most.
func (d *directness) spent(took time.Duration, keys int) {
	cost := took / time.Duration(keys)
	if d.cost > 0 {
		cost = (d.cost + cost) / 2
	}
	d.cost = max(cost, time.Microsecond)
}

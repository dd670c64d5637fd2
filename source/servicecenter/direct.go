package servicecenter

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// The registry shows what changes only when nothing has changed for a moment, so
// that under steady change its finds are tens of seconds old. Asked to leave its
// cache alone it reads its backend, which costs it more than twenty times as much.
// So each round finds some services directly: those that have changed lately, and
// in turn a few of all. The more of these differ from what the registry shows, the
// more are found directly in the next round.
const (
	// fewDirect is how many services are found directly while nothing differs.
	fewDirect = 16
	// directShare is the part of poll that a round may take with it: the rest after it
	// is no longer than poll.
	directShare = restAfter
	// directLeast is the part of poll that is left to it in a round that takes longer
	// without it.
	directLeast = 16
	// directWithin bounds such a find. A registry whose backend is gone goes on to
	// answer from its cache, but is silent without it.
	directWithin = 2 * time.Second
)

// directRest bounds how long there is no such find after one failed.
var directRest = wait.Backoff{Min: 4 * time.Second, Max: time.Minute}

// direct is what a find without the registry's cache has said of a key, if that is
// something else than what the registry shows.
type direct struct {
	rev       string
	instances []Instance
}

// directness is how far direct finds go.
type directness struct {
	most int           // keys in the next round
	at   Key           // the last key whose turn it was
	turn uint64        // counts them
	cost time.Duration // of one key; zero while unknown
	due  time.Time     // before which there are none, since they failed
	lost int           // how many have failed in a row
	wary bool          // what is lacking is not taken for gone

	hot          int     // how many of the last ones had changed lately
	fresh, turns float64 // which part of those, and of the others, was new: lately
}

// findDirect finds some services without the registry's cache. That this fails is
// no failure of the round.
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

// findDirect asks the member in use, and none in its place: for what is shown there
// is another way.
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

// limit is how many keys may be found directly in a round that has kept the
// registry busy for some time already.
func (d *directness) limit(poll, busy time.Duration) int {
	most := max(d.most, fewDirect)
	if d.cost > 0 {
		most = min(most, int(max(poll/directShare-busy, poll/directLeast)/d.cost))
	}
	return max(1, most)
}

// failed notes that a find of some keys came to nothing.
func (d *directness) failed(took time.Duration, keys int) {
	d.lost++
	d.most, d.due = fewDirect, time.Now().Add(directRest.After(d.lost, rand.Float64()))
	d.spent(took, keys)
}

// spent notes what a find of some keys has cost, the latest counting most.
func (d *directness) spent(took time.Duration, keys int) {
	cost := took / time.Duration(keys)
	if d.cost > 0 {
		cost = (d.cost + cost) / 2
	}
	d.cost = max(cost, time.Microsecond)
}

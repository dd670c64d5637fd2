package pushtest

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// history is one run of an engine with its producers and clients.
type history struct {
	t        *rapid.T
	engine   *push.Engine
	end      context.CancelFunc
	ended    chan struct{}
	patience time.Duration
	workers  int

	makers  []*maker // added makers first
	added   []*maker
	clients []*client
	sinks   []*sink
	largest int // bytes of a message; 0 if unbounded, otherwise there are only sinks
	clock   int
	diary   []string
	paced   bool // each step waits until the engine has handled the previous one
	calm    bool // nothing is NACKed or split and a turn reads everything, so late removals can be counted
}

func newHistory(t *rapid.T, a Addition) *history {
	h := &history{t: t, ended: make(chan struct{}), patience: 10 * time.Second, workers: rapid.IntRange(1, 3).Draw(t, "workers"), calm: true}
	h.paced = rapid.Bool().Draw(t, "one after the other")
	config := push.Config{
		Order: a.Order, Workers: h.workers, Patience: h.patience,
		Frame: func(world.Encoded) (heads [2][]byte) { return heads },
	}
	if rapid.Bool().Draw(t, "small turns") {
		config.Turn, h.calm = rapid.IntRange(1, 16).Draw(t, "names of a turn"), false
	}
	if rapid.IntRange(0, 2).Draw(t, "small responses") == 0 {
		config.Budget, h.calm = 40, false
	}
	if rapid.IntRange(0, 5).Draw(t, "bounded messages") == 0 {
		h.largest = rapid.SampledFrom([]int{100, 400, 2000}).Draw(t, "largest")
		config.Largest, config.Budget = h.largest, h.largest*3/4
	}
	h.engine = push.New(config)
	for _, added := range append([]Addition{a}, a.Beside...) {
		h.makers = append(h.makers, newMaker(h, added, 2*rapid.IntRange(0, 1).Draw(t, "faulty")))
	}
	h.added = h.makers
	h.makers = append(h.makers, newMaker(h, neighbour("good"), 0), newMaker(h, neighbour("faulty"), 6))
	ctx, cancel := context.WithCancel(context.Background())
	h.end = cancel
	go func() {
		defer close(h.ended)
		h.engine.Run(ctx)
	}()
	return h
}

// stop ends the engine, which closes every client that is connected.
func (h *history) stop() {
	h.end()
	<-h.ended
}

// drawMaker draws a producer, most often an added one.
func (h *history) drawMaker() *maker {
	if rapid.IntRange(0, 2).Draw(h.t, "neighbour") == 0 {
		return rapid.SampledFrom(h.makers).Draw(h.t, "producer")
	}
	return rapid.SampledFrom(h.added).Draw(h.t, "producer")
}

// drawType draws a type that a client may ask for.
func (h *history) drawType() (*maker, world.Row) {
	m := h.drawMaker()
	return m, world.Row(rapid.IntRange(0, len(m.Rows)-1).Draw(h.t, "type"))
}

func (h *history) run() {
	t := h.t
	for range rapid.IntRange(0, 12).Draw(t, "before anything is published") {
		h.step(false)
	}
	for _, m := range h.makers[:len(h.makers)-1] { // the faulty producer may publish later
		if m.published == 0 {
			m.publish()
		}
	}
	for range rapid.IntRange(0, 50).Draw(t, "steps") {
		h.step(true)
	}
	h.rest()
	h.churn()
	h.recover()
	h.rest()
	h.leave()
}

// step makes one random move. Most moves follow each other at once.
func (h *history) step(publish bool) {
	if h.paced {
		synctest.Wait()
	}
	switch n := rapid.IntRange(0, 14).Draw(h.t, "what"); {
	case n < 5 && publish:
		h.drawMaker().publish()
	case n == 5 && len(h.clients) < 5 && h.largest == 0, len(h.clients) == 0 && h.largest == 0:
		h.join()
	case n == 10 && len(h.sinks) < 3, len(h.clients) == 0 && len(h.sinks) == 0:
		h.joinSink()
	case n == 6:
		h.rest()
	case n == 7:
		synctest.Wait()
	case n == 8:
		time.Sleep(time.Duration(rapid.IntRange(1, 12).Draw(h.t, "seconds")) * time.Second)
	case n == 9 && publish:
		rapid.SampledFrom(h.makers).Draw(h.t, "listed").listed = true
	case len(h.sinks) > 0 && (len(h.clients) == 0 || n > 12):
		rapid.SampledFrom(h.sinks).Draw(h.t, "sink").act()
	default:
		rapid.SampledFrom(h.clients).Draw(h.t, "who").act()
	}
}

// join adds a client that asks for a type at once.
func (h *history) join() {
	t := h.t
	c := &client{
		h: h, id: fmt.Sprint("client-", len(h.clients)), who: h.makers[0].Client(t), bad: map[string]bool{}, views: map[world.Type][]view{},
		silent: rapid.IntRange(0, 5).Draw(t, "silent") == 0, rolls: rapid.Bool().Draw(t, "rolls back"),
	}
	h.clients = append(h.clients, c)
	synctest.Wait() // the client sees nothing of earlier worlds
	for _, m := range h.makers {
		if m.published > 0 {
			c.note(m)
		}
	}
	h.log("%v joins as %+v, silent %t", c, c.who, c.silent)
	c.connect()
	for range rapid.IntRange(1, 4).Draw(t, "asks") {
		c.ask()
	}
}

// restless bounds the rounds of answers until everything is at rest.
const restless = 300

// rest makes every client read and answer until nothing is in flight. Then it checks their
// resources.
func (h *history) rest() {
	for waited, round := 0, 0; waited < 2; round++ {
		synctest.Wait()
		quiet := true
		for _, c := range h.clients {
			quiet = !c.turn() && quiet
		}
		for _, s := range h.sinks {
			quiet = !s.turn() && quiet
		}
		switch {
		case round > restless:
			h.violated(resent, "clients are sent responses without end while nothing changes")
		case !quiet:
			waited = 0
		default:
			waited++
			time.Sleep(h.patience) // patience with clients that do not answer
		}
	}
	for _, c := range h.clients {
		c.check()
	}
	for _, s := range h.sinks {
		s.check()
	}
	behind := slices.ContainsFunc(h.clients, func(c *client) bool { return c.busy })
	for _, m := range h.makers {
		if !behind { // a client that does not read for now is checked later
			clear(m.revoked)
		}
		m.lately = slices.Clone(m.cursed)
	}
	h.clock++
	h.log("everything is at rest")
}

// recover ends all faults and makes every client read.
func (h *history) recover() {
	for _, m := range h.makers {
		m.heal()
	}
	for _, c := range h.clients {
		c.busy = false
		if c.sub == nil {
			c.connect()
			c.ask()
		}
	}
	for _, s := range h.sinks {
		if s.sub == nil {
			s.connect()
		}
	}
}

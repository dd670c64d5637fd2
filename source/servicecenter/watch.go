package servicecenter

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// coalesce is how long hints are gathered before a find: changes come in bursts, and
// one find answers for all of them.
const coalesce = 100 * time.Millisecond

// reopen bounds the wait before a watch that ended is opened again.
var reopen = wait.Backoff{Min: 500 * time.Millisecond, Max: time.Minute}

// watch keeps a websocket for each group of keys. The goroutine of the source owns it
// and does all work except listening. A nil watch is switched off.
type watch struct {
	name    string
	hints   *hints
	groups  map[group]*watched
	gather  *time.Timer
	arming  bool // the timer runs
	spawned sync.WaitGroup
}

// watched is the state of the watch of a group.
type watched struct {
	consumer   string             // the id of its consumer; empty if it is not registered
	learned    map[Key]int        // how often a key was found in its name; enough once it was answered
	stop       context.CancelFunc // of the listening goroutine; nil without one
	failures   int                // since it was last open
	due        time.Time          // before which it is not opened again
	lastLogged string             // the last logged text
}

func newWatch(o Options) *watch {
	w := &watch{name: consumerName(o), hints: newHints(), groups: map[group]*watched{}, gather: time.NewTimer(0)}
	w.gather.Stop()
	return w
}

// signal has a token when there are hints to gather.
func (w *watch) signal() <-chan struct{} {
	if w == nil || w.arming {
		return nil
	}
	return w.hints.signal
}

// arm begins to gather.
func (w *watch) arm() {
	w.arming = true
	w.gather.Reset(coalesce)
}

// gathered fires when hints have been gathered for long enough.
func (w *watch) gathered() <-chan time.Time {
	if w == nil {
		return nil
	}
	return w.gather.C
}

// handleHints finds the hinted keys, and all keys of each group with a newly opened
// watch: there were no events before.
func (s *Source) handleHints(ctx context.Context) error {
	w := s.watch
	w.arming = false
	keys, opens, ends := w.hints.take()
	for g, err := range ends {
		if one := w.groups[g]; one != nil && one.stop != nil {
			one.ended(err)
			s.logOnce(one, g, err)
		}
	}
	for _, k := range s.state.keys {
		if opens[k.group()] {
			keys[k] = true
		}
	}
	for g := range opens {
		if one := w.groups[g]; one != nil {
			one.failures, one.lastLogged = 0, ""
		}
	}
	return s.findHinted(ctx, keys)
}

func (o *watched) ended(err error) {
	o.stop()
	o.stop = nil
	if isUnknownConsumer(err) {
		o.consumer = ""
	}
	o.retryLater()
}

func (o *watched) retryLater() {
	o.failures++
	o.due = time.Now().Add(reopen.After(o.failures, rand.Float64()))
}

// logOnce logs why a group is not watched, once for each reason. Polling still finds
// its services.
func (s *Source) logOnce(one *watched, g group, err error) {
	if text := err.Error(); one.lastLogged != text {
		one.lastLogged = text
		s.options.Log.Warn("a watch has ended, polling goes on",
			"environment", g.environment, "app", g.app, "err", text)
	}
}

// relearn makes every key be found once more in the name of its consumer, now and
// then. The registry forgets keys that are deleted and come back before any list
// lacked them.
func (w *watch) relearn() {
	if w == nil {
		return
	}
	for _, one := range w.groups {
		clear(one.learned)
	}
}

// keepWatches opens a watch for each present group, and ends the others. It fails
// only when ctx ends.
func (s *Source) keepWatches(ctx context.Context) error {
	w := s.watch
	if w == nil {
		return nil
	}
	present := map[group][]Key{}
	for _, k := range s.state.keys {
		present[k.group()] = append(present[k.group()], k)
	}
	for g, keys := range present {
		one := w.groups[g]
		if one == nil {
			one = &watched{}
			w.groups[g] = one
		}
		if time.Now().Before(one.due) {
			continue
		}
		err := s.keepConsumer(ctx, g, one, keys)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			one.retryLater()
			s.logOnce(one, g, err)
		}
		if _, answered := errors.AsType[*rejected](err); !answered {
			break // the next round tries the others, so that no round waits for each of them
		}
	}
	for g, one := range w.groups {
		if present[g] == nil {
			w.close(one)
			s.leave(ctx, one)
			delete(w.groups, g)
		}
	}
	return context.Cause(ctx)
}

// keepConsumer registers the consumer of a group, makes it depend on every key of the
// group, and starts listening.
func (s *Source) keepConsumer(ctx context.Context, g group, one *watched, keys []Key) error {
	if one.consumer == "" {
		id, err := s.client.register(ctx, g, s.watch.name)
		if err != nil {
			return err
		}
		one.consumer, one.learned = id, map[Key]int{}
	}
	if err := s.learn(ctx, one, keys); err != nil {
		return err
	}
	if one.stop == nil {
		token, err := s.access.token(ctx, s.client)
		if err != nil {
			return err
		}
		s.watch.listen(ctx, s.client, g, one, token)
	}
	return nil
}

// enough is how often the learning of a key that cannot be found is tried: polling
// finds it all the same.
const enough = 3

// learn finds new keys in the name of the consumer, so that the registry notifies the
// consumer of their changes. The answers themselves are ignored. A key that was gone
// is new when it comes back, for the registry has forgotten it.
func (s *Source) learn(ctx context.Context, one *watched, keys []Key) error {
	maps.DeleteFunc(one.learned, func(k Key, _ int) bool { return s.state.entries[k] == nil })
	var asks []ask
	for _, k := range keys {
		if one.learned[k] < enough {
			asks = append(asks, ask{k, s.state.entries[k].rev})
		}
	}
	for _, batch := range chunks(asks, mostBytes, mostKeys) {
		answers, err := s.client.find(ctx, batch, one.consumer)
		if err != nil {
			return err
		}
		for n, a := range batch.asks {
			one.learned[a.Key]++
			if answers[n].err == nil {
				one.learned[a.Key] = enough
			}
		}
	}
	return nil
}

// listen starts the one goroutine of a group.
func (w *watch) listen(ctx context.Context, c *client, g group, one *watched, token string) {
	ctx, one.stop = context.WithCancel(ctx)
	e := c.stream(g, one.consumer, token, w.hints)
	w.spawned.Go(func() { w.hints.ended(g, e.listen(ctx)) })
}

// close ends the listening of a group.
func (w *watch) close(one *watched) {
	if one.stop != nil {
		one.stop()
		one.stop = nil
	}
}

// closeAll ends all listening, and returns when it has ended.
func (w *watch) closeAll() {
	for _, one := range w.groups {
		w.close(one)
	}
	w.spawned.Wait()
	w.hints.take()
	w.gather.Stop()
	w.arming = false
}

// leaveWithin bounds how long a stop waits for the registry.
const leaveWithin = 3 * time.Second

// endWatch ends all listening. At a normal stop the consumers are unregistered, too;
// when the source is only run again, they are still needed.
func (s *Source) endWatch(ctx context.Context) {
	if s.watch == nil {
		return
	}
	s.watch.closeAll()
	if ctx.Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	for g, one := range s.watch.groups {
		s.leave(ctx, one)
		delete(s.watch.groups, g)
	}
}

// leave unregisters a consumer; this source has always registered it.
func (s *Source) leave(ctx context.Context, one *watched) {
	if one.consumer == "" {
		return
	}
	if err := s.client.unregister(ctx, one.consumer); err != nil {
		s.options.Log.Warn("a consumer stays in the registry", "consumer", one.consumer, "err", err.Error())
	}
	one.consumer = ""
}

// Package watch keeps websockets to a Service Center, whose events name keys to find at
// once.
//
// A [Watch] has one websocket for each group of keys. The registry sends events to a
// consumer only, so the watch registers one per group, and finds the keys of the group
// in its name: the registry remembers these finds. Events are hints. Polling finds the
// same changes, only later, so no failure of a watch is an error.
//
// Concurrency: the goroutine of the source owns a [Watch] and does all work except
// listening. Each websocket has a goroutine of its own, which hands over only hints and
// ends before [Watch.End] returns. A nil watch is switched off.
package watch

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/sanitize"
)

// coalesce is how long hints are gathered before a find: changes come in bursts, and
// one find answers for all of them.
const coalesce = 100 * time.Millisecond

// reopen bounds the wait before a watch that ended is opened again.
var reopen = wait.Backoff{Min: 500 * time.Millisecond, Max: time.Minute}

// Watch keeps a websocket for each group of keys.
type Watch struct {
	name      string // of the consumers
	log       *slog.Logger
	hints     *hints
	consumers map[registry.Group]*consumer
	gather    *time.Timer
	arming    bool // the timer runs
	spawned   sync.WaitGroup
}

// New returns a watch. The names of the instance and the source name its consumers.
func New(instance, source string, log *slog.Logger) *Watch {
	w := &Watch{
		name: consumerName(instance, source), log: log,
		hints: newHints(), consumers: map[registry.Group]*consumer{}, gather: time.NewTimer(0),
	}
	w.gather.Stop()
	return w
}

// longestName is how long the name of a service may be in the registry.
const longestName = 128

// consumerName returns the name of a watch's consumers. No other Isthmus and no other
// source has it, as long as instances differ. The name of a source has no dot.
func consumerName(instance, source string) string {
	word := sanitize.Word(instance)
	if word != instance {
		word += "-" + sanitize.Hash(instance)
	}
	name := "isthmus-watch-" + word + "." + source
	if len(name) > longestName {
		name = sanitize.WithHash(name, name, longestName)
	}
	return name
}

// Signal has a token when there are hints to gather.
func (w *Watch) Signal() <-chan struct{} {
	if w == nil || w.arming {
		return nil
	}
	return w.hints.signal
}

// Arm begins to gather.
func (w *Watch) Arm() {
	w.arming = true
	w.gather.Reset(coalesce)
}

// Gathered fires when hints have been gathered for long enough.
func (w *Watch) Gathered() <-chan time.Time {
	if w == nil {
		return nil
	}
	return w.gather.C
}

// Hinted returns the keys to find: the keys that events named, and the present keys of
// each group with a newly opened websocket, which had no events before.
func (w *Watch) Hinted(present []registry.Key) map[registry.Key]bool {
	w.arming = false
	keys, opens, ends := w.hints.take()
	for g, err := range ends {
		if c := w.consumers[g]; c != nil && c.stop != nil {
			c.ended(err)
			w.logOnce(c, g, err)
		}
	}
	for _, k := range present {
		if opens[k.Group()] {
			keys[k] = true
		}
	}
	for g := range opens {
		if c := w.consumers[g]; c != nil {
			c.failures, c.lastLogged = 0, ""
		}
	}
	return keys
}

// logOnce logs why a group is not watched, once for each reason. Polling still finds
// its services.
func (w *Watch) logOnce(c *consumer, g registry.Group, err error) {
	if text := err.Error(); c.lastLogged != text {
		c.lastLogged = text
		w.log.Warn("a watch ended; polling continues", "environment", g.Environment, "app", g.App, "err", text)
	}
}

// Relearn makes every key be found once more in the name of its consumer, now and
// then. The registry forgets keys that are deleted and come back before any list
// lacked them.
func (w *Watch) Relearn() {
	if w == nil {
		return
	}
	for _, c := range w.consumers {
		clear(c.learned)
	}
}

// Keep opens a websocket for each group of the present keys, and ends the others. It
// fails only when ctx ends.
func (w *Watch) Keep(ctx context.Context, client *registry.Client, present []registry.Ask) error {
	groups := map[registry.Group][]registry.Ask{}
	for _, a := range present {
		groups[a.Group()] = append(groups[a.Group()], a)
	}
	for g, asks := range groups {
		c := w.consumers[g]
		if c == nil {
			c = &consumer{}
			w.consumers[g] = c
		}
		if time.Now().Before(c.due) {
			continue
		}
		err := w.keep(ctx, client, c, g, asks)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			c.retryLater()
			w.logOnce(c, g, err)
		}
		if !registry.IsRejected(err) {
			break // the next round tries the others, so that no round waits for each of them
		}
	}
	for g, c := range w.consumers {
		if groups[g] == nil {
			c.close()
			w.leave(ctx, client, c)
			delete(w.consumers, g)
		}
	}
	return context.Cause(ctx)
}

// keep registers the consumer of a group, makes it depend on every key of the group,
// and starts listening.
func (w *Watch) keep(ctx context.Context, client *registry.Client, c *consumer, g registry.Group, asks []registry.Ask) error {
	if c.id == "" {
		id, err := client.Register(ctx, g, w.name)
		if err != nil {
			return err
		}
		c.id, c.learned = id, map[registry.Key]int{}
	}
	if err := c.learn(ctx, client, asks); err != nil {
		return err
	}
	if c.stop == nil {
		stream, err := client.Watch(ctx, c.id)
		if err != nil {
			return err
		}
		ctx, c.stop = context.WithCancel(ctx)
		w.spawned.Go(func() {
			err := stream.Listen(ctx, func() { w.hints.opened(g) }, w.hints.received)
			w.hints.ended(g, err)
		})
	}
	return nil
}

// leaveWithin bounds how long a stop waits for the registry.
const leaveWithin = 3 * time.Second

// End ends all listening, and returns when it has ended. At a normal stop, when ctx has
// ended, the consumers are unregistered, too. When the source is only run again, they
// are still needed.
func (w *Watch) End(ctx context.Context, client *registry.Client) {
	if w == nil {
		return
	}
	for _, c := range w.consumers {
		c.close()
	}
	w.spawned.Wait()
	w.hints.take()
	w.gather.Stop()
	w.arming = false
	if ctx.Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	for g, c := range w.consumers {
		w.leave(ctx, client, c)
		delete(w.consumers, g)
	}
}

// leave unregisters a consumer; this source has always registered it.
func (w *Watch) leave(ctx context.Context, client *registry.Client, c *consumer) {
	if c.id == "" {
		return
	}
	if err := client.Unregister(ctx, c.id); err != nil {
		w.log.Warn("a consumer could not be unregistered and stays in the registry", "consumer", c.id, "err", err.Error())
	}
	c.id = ""
}

// consumer is the state of the watch of a group.
type consumer struct {
	id         string               // in the registry; empty if it is not registered
	learned    map[registry.Key]int // how often a key was found in its name; enough once it was answered
	stop       context.CancelFunc   // of the listening goroutine; nil without one
	failures   int                  // since it was last open
	due        time.Time            // before which it is not opened again
	lastLogged string               // the last logged text
}

// ended notes that the websocket has ended, and why.
func (c *consumer) ended(err error) {
	c.close()
	if registry.IsUnknownConsumer(err) {
		c.id = ""
	}
	c.retryLater()
}

func (c *consumer) retryLater() {
	c.failures++
	c.due = time.Now().Add(reopen.After(c.failures, rand.Float64()))
}

// close ends the listening.
func (c *consumer) close() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// enough is how often the learning of a key that cannot be found is tried: polling
// finds it all the same.
const enough = 3

// learn finds new keys in the name of the consumer, so that the registry notifies the
// consumer of their changes. The answers themselves are ignored. A key that was gone
// is new when it comes back, for the registry has forgotten it.
func (c *consumer) learn(ctx context.Context, client *registry.Client, present []registry.Ask) error {
	keys := make(map[registry.Key]bool, len(present))
	var asks []registry.Ask
	for _, a := range present {
		keys[a.Key] = true
		if c.learned[a.Key] < enough {
			asks = append(asks, a)
		}
	}
	maps.DeleteFunc(c.learned, func(k registry.Key, _ int) bool { return !keys[k] })
	for _, batch := range registry.Batches(asks) {
		found, err := client.Find(ctx, batch, c.id)
		if err != nil {
			return err
		}
		for n, a := range batch.Asks {
			c.learned[a.Key]++
			if found[n].Err == nil {
				c.learned[a.Key] = enough
			}
		}
	}
	return nil
}

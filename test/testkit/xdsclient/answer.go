package xdsclient

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rider is a change of subscription that rides on an answer.
type Rider struct{ Subscribe, Unsubscribe []string }

// take is what happens to a response that arrives.
func (c *Client) take(r response) {
	k := c.state.topic(r.typeURL)
	c.state.clock++
	r.at = c.state.clock
	c.log("<- %s", describeResponse(r))
	c.wellFormed(k, r)
	c.consistent(k, r)
	c.ordered(k, r)
	c.explain(k, r)
	k.responses++
	for _, res := range r.resources {
		k.received[res.Name]++
		k.when[res.Name] = c.state.clock
	}
	for _, name := range r.removed {
		k.removals[name]++
		k.when[name] = c.state.clock
	}
	k.newest = r
	k.open = append(k.open, r)
	switch {
	case c.config.Manual:
	case c.config.Delay > 0:
		c.answerLater(k)
	default:
		c.answer(k, "", Rider{})
	}
}

// answerLater answers the oldest open response of a type after a while, if the
// stream is still there and the client does not keep its answers back.
func (c *Client) answerLater(k *topic) {
	asked := c.session
	time.AfterFunc(c.config.Delay, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.session == asked && !c.config.Manual && len(k.open) > 0 {
			c.answer(k, "", Rider{})
			c.wake()
		}
	})
}

// answer accepts the oldest open response of a type, or NACKs it if the
// script gives a reason or the client finds one.
func (c *Client) answer(k *topic, reason string, rider Rider) {
	r := k.open[0]
	k.open = k.open[1:]
	k.nonce = r.nonce
	wrong := c.wrongIn(r)
	switch {
	case reason != "": // by the script: the client takes nothing
	case len(wrong) == 0:
		k.acked, k.settled = r.version, r.version
		c.apply(k, r, nil)
		for _, res := range r.resources {
			k.check.contents[res.Name] = res.identity()
		}
	default:
		reason = strings.Join(wrong, "; ")
		if !c.config.Rollback {
			c.apply(k, r, c.config.NACK)
		}
	}
	if reason != "" {
		c.markUnresolved(k, r)
	}
	if r.full {
		k.check.judge(r, reason != "")
	}
	c.change(k, rider.Subscribe, rider.Unsubscribe, &answer{r, reason})
	c.left(k)
	c.follow()
}

func (c *Client) wrongIn(r response) (reasons []string) {
	if c.config.NACK == nil {
		return nil
	}
	for _, res := range r.resources {
		if reason := c.config.NACK(res); reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s", res.Name, reason))
		}
	}
	return reasons
}

// apply takes what a response brings, but for what is wrong.
func (c *Client) apply(k *topic, r response, wrong func(Resource) string) {
	if r.full {
		for _, name := range sortedKeys(k.held) {
			if !slices.ContainsFunc(r.resources, func(res Resource) bool { return res.Name == name }) {
				delete(k.held, name)
			}
		}
	}
	for _, res := range r.resources {
		if k.covers(res.Name) && (wrong == nil || wrong(res) == "") {
			k.held[res.Name] = res
			since, _ := k.coveredSince(res.Name)
			k.check.confirmed[res.Name] = since < r.at // else it was dropped meanwhile, and asked for again
		}
	}
	for _, name := range r.removed {
		delete(k.held, name)
	}
}

// markUnresolved notes that the server cannot know what became of a response.
func (c *Client) markUnresolved(k *topic, r response) {
	k.nacks++
	for _, res := range r.resources {
		k.check.unresolved[res.Name] = true
	}
	for _, name := range r.removed {
		k.check.unresolved[name] = true
	}
}

// Accept accepts the oldest open response of a type, unless the client finds
// fault with it.
func (c *Client) Accept(typeURL string) { c.answerOpen(typeURL, "", Rider{}) }

// AcceptAnd is Accept with a change of subscription that rides on it.
func (c *Client) AcceptAnd(typeURL string, r Rider) { c.answerOpen(typeURL, "", r) }

// NACKAnd NACKs the oldest open response of a type, of which the client
// takes nothing, with a change of subscription that rides on it.
func (c *Client) NACKAnd(typeURL, reason string, r Rider) { c.answerOpen(typeURL, reason, r) }

func (c *Client) answerOpen(typeURL, reason string, rider Rider) {
	c.t.Helper()
	c.Await("an open response of "+short(typeURL), func(s *State) bool { return s.Open(typeURL) > 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer(c.state.topic(typeURL), reason, rider)
	c.wake()
}

// Hold makes the client keep its answers back.
func (c *Client) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.Manual = true
}

// Release gives all answers that are held back, and no longer holds any.
func (c *Client) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.Manual = false
	for _, url := range slices.Clone(c.order) {
		for k := c.state.topic(url); len(k.open) > 0; {
			c.answer(k, "", Rider{})
		}
	}
	c.wake()
}

func describeResponse(r response) string {
	words := []string{short(r.typeURL), r.nonce}
	for _, res := range r.resources {
		words = append(words, res.Name+"@"+abbreviated(res.identity()))
	}
	for _, name := range r.removed {
		words = append(words, "-"+name)
	}
	if all := len(words) - 2; all > many {
		words = append(words[:many], fmt.Sprintf("… %d in all", all))
	}
	if r.full {
		words = append(words, "and no others")
	}
	return strings.Join(append(words, "("+abbreviated(r.version)+")"), " ")
}

// many names are not worth reading.
const many = 20

func abbreviated(version string) string { return version[:min(len(version), 6)] }

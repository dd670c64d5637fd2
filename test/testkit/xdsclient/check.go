package xdsclient

import (
	"fmt"
	"maps"
)

// check is what the rules remember of a stream.
type check struct {
	sent       map[string]string // what the server sent last, or the client said it has: name → identity
	contents   map[string]string // by name, of accepted responses
	asking     map[string]*ask   // subscriptions that were not answered yet
	unresolved map[string]bool   // named in a NACKed response and not sent since
	joined     map[string]bool   // whose cluster was sent since
	owed       map[string]bool   // whose cluster was sent anew since
	confirmed  map[string]bool   // held because this stream brought it
	state      map[string]string // by name, of the full set that was answered last
	suspects   map[string]bool   // new in a full set that was NACKed, and none was accepted since
}

// ask is a subscription whose answer has not come.
type ask struct {
	times int
	fresh bool // the client did not ask for the name before: whatever comes is an answer
	// crossed says that something came that may have been on its way already.
	crossed bool
	// missed counts the full sets without it.
	missed int
}

func newCheck() check {
	return check{
		sent: map[string]string{}, contents: map[string]string{}, asking: map[string]*ask{},
		unresolved: map[string]bool{}, joined: map[string]bool{}, owed: map[string]bool{}, confirmed: map[string]bool{},
		state: map[string]string{}, suspects: map[string]bool{},
	}
}

func (c *check) ask(name string, covered bool) {
	a := c.asking[name]
	if a == nil {
		a = &ask{fresh: !covered}
		c.asking[name] = a
	}
	a.times++
}

// answered takes a subscription off the list. Anyway says that the resource
// would have come without it, and perhaps that nobody can tell.
func (c *check) answered(name string, anyway, perhaps bool) (was bool) {
	a := c.asking[name]
	switch {
	case a == nil:
		return false
	case anyway && !a.fresh:
		// It may have been on its way already; the answer may follow.
	case perhaps && !a.fresh && !a.crossed:
		a.crossed = true // likewise, once
	case a.times == 1:
		delete(c.asking, name)
	default:
		a.times--
		a.fresh = false
	}
	return true
}

// forget drops what concerns a name that is no longer asked for.
func (c *check) forget(name string) {
	c.gone(name)
	delete(c.asking, name)
}

// gone drops what concerns a resource that was said to be gone. It may have
// been asked for since.
func (c *check) gone(name string) {
	delete(c.sent, name)
	delete(c.unresolved, name)
	delete(c.joined, name)
	delete(c.owed, name)
	delete(c.confirmed, name)
	delete(c.state, name)
	delete(c.suspects, name)
}

// judge notes what an answer to a full set says of each resource: whoever NACKs
// one NACKs all that is new in it, for it does not say which is at fault.
func (c *check) judge(r response, nacked bool) {
	before := c.state
	c.state = map[string]string{}
	for _, res := range r.resources {
		id := res.identity()
		c.state[res.Name] = id
		if was, had := before[res.Name]; !had || was != id {
			c.suspects[res.Name] = true
		}
	}
	maps.DeleteFunc(c.suspects, func(name string, _ bool) bool { _, there := c.state[name]; return !nacked || !there })
}

// wellFormed checks a response by itself.
func (c *Client) wellFormed(k *topic, r response) {
	switch {
	case r.nonce == "":
		c.violation("a %s response without a nonce", short(k.url))
	case c.nonces[r.nonce]:
		c.violation("the nonce %q of a %s response was used before on this stream", r.nonce, short(k.url))
	}
	c.nonces[r.nonce] = true
	if !k.asked {
		c.violation("a %s response, which was not asked for", short(k.url))
	}
	if len(k.open) > 0 && !c.config.Overlap {
		c.violation("a second %s response before the first was answered", short(k.url))
	}
	names := map[string]bool{}
	note := func(name, what string) {
		if names[name] {
			c.violation("%s occurs twice in a %s response", name, short(k.url))
		}
		names[name] = true
		_, resumed := k.check.sent[name]
		if !k.covers(name) && !k.leaves(name) && !(resumed && what == "removed") {
			c.violation("%s %s was %s, which is not subscribed", short(k.url), name, what)
		}
	}
	for _, res := range r.resources {
		note(res.Name, "sent")
	}
	for _, name := range r.removed {
		note(name, "removed")
	}
}

// leaves reports whether a name that is no longer asked for may still come.
func (k *topic) leaves(name string) bool { return k.leavingAll || k.leaving[name] }

// consistent checks the versions of a response against all others.
func (c *Client) consistent(k *topic, r response) {
	problem := func(err error) {
		if err != nil {
			c.violation("%v", err)
		}
	}
	for _, res := range r.resources {
		if res.Version != "" {
			problem(c.config.Ledger.noteResource(res))
		}
	}
	switch {
	case c.dialect.delta():
		return
	case r.version == "":
		c.violation("a %s response without version_info", short(k.url))
	case r.full:
		problem(c.config.Ledger.noteState(k.url, r.version, r.resources))
	}
	if r.version != k.settled || c.config.Overlap { // a late NACK may cross
		return
	}
	for _, res := range r.resources {
		if before, ok := k.check.contents[res.Name]; ok && before != res.identity() {
			c.violation("%s %s changed but version_info did not", short(k.url), res.Name)
		}
	}
}

// violation notes that the server broke a rule.
func (c *Client) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.wrong = append(c.wrong, text)
	c.log("!! %s", text)
	c.wake()
}

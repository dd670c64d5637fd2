package xdsclient

import "encoding/hex"

// explain checks that everything in a response has one of the reasons the
// server may have to send it, and remembers what it brought.
func (c *Client) explain(k *topic, r response) {
	if len(r.resources) == 0 && len(r.removed) == 0 && !r.full && !k.first {
		c.violation("an empty %s response that answers no first request", short(k.url))
	}
	if r.full {
		c.explainState(k, r)
	} else {
		for _, res := range r.resources {
			if reason := c.reason(k, res, false); reason == "" {
				c.violation("%s %s was sent again for no reason", short(k.url), res.Name)
			}
		}
	}
	for _, name := range r.removed {
		c.explainRemoval(k, name)
	}
	k.first = false
}

// reason says why a resource may have been sent; empty if there is none.
// Anyway says that it would be there without a reason of its own.
func (c *Client) reason(k *topic, res Resource, anyway bool) (reason string) {
	before, had := k.check.sent[res.Name]
	changed := !had || before != res.identity()
	_, named := k.names[res.Name]
	unresolved, joined := k.check.unresolved[res.Name], k.check.joined[res.Name]
	// Of a route that only the wildcard asked for, it cannot be said that it was gone.
	back := k.url == RDS && !c.dialect.delta() && k.star
	asked := k.check.answered(res.Name, changed || unresolved || joined || anyway, back)
	delete(k.check.unresolved, res.Name)
	delete(k.check.joined, res.Name)
	delete(k.check.owed, res.Name)
	if !k.covers(res.Name) {
		c.sentCluster(res, false)
		return "it was on its way when it was unsubscribed"
	}
	k.check.sent[res.Name] = res.identity()
	if k.leaves(res.Name) { // it was dropped and asked for again: this may be from before, and come again
		k.check.ask(res.Name, true)
	}
	switch {
	case changed:
		reason = "it changed"
	case asked:
		reason = "it was subscribed"
	case unresolved:
		reason = "it was part of a NACKed response"
	case joined:
		reason = "its cluster was sent"
	case k.first && !c.dialect.delta():
		reason = "it answers the first request"
	case k.url == RDS && !c.dialect.delta() && !named:
		reason = "it was gone, which cannot be said, and it has come back" // of names that were not asked for no account is kept
	}
	if reason != "" {
		c.sentCluster(res, changed)
	}
	return reason
}

// explainState checks that there was a reason for a full set.
func (c *Client) explainState(k *topic, r response) {
	reasons := 0
	if k.first || len(k.check.unresolved) > 0 || k.leavingAll || len(k.leaving) > 0 {
		reasons++ // what is no longer asked for may have been about to go
	}
	here := map[string]bool{}
	for _, res := range r.resources {
		here[res.Name] = true
		if before, had := k.check.sent[res.Name]; !had || before != res.identity() {
			reasons++
		}
	}
	for name := range k.check.sent {
		if !here[name] {
			reasons++
			k.check.gone(name)
			c.clusterGone(k, name)
		}
	}
	anyway := reasons > 0
	for _, res := range r.resources {
		if c.reason(k, res, anyway) != "" && k.covers(res.Name) {
			reasons++
		}
	}
	for name, a := range k.check.asking {
		if here[name] {
			continue
		}
		reasons++ // it was asked for and is not there
		if anyway {
			continue
		}
		if a.missed++; a.missed > 1 && !c.config.Overlap {
			delete(k.check.asking, name) // the first may have been on its way already
		}
	}
	clear(k.check.unresolved)
	if reasons == 0 {
		c.violation("a full %s state in which nothing is new", short(k.url))
	}
}

func (c *Client) explainRemoval(k *topic, name string) {
	_, sent := k.check.sent[name]
	if _, held := k.held[name]; held { // it dropped that, asked for it again, and took it only then
		sent = true
	}
	asked := k.check.answered(name, sent || k.leaves(name), false)
	if !sent && !asked && !k.check.unresolved[name] && !k.leaves(name) {
		c.violation("%s %s was removed, which was neither sent nor asked for", short(k.url), name)
	}
	k.check.gone(name)
	c.clusterGone(k, name)
}

// identity is what tells a content from another: the version if there is one,
// which the ledger holds to the content.
func (r Resource) identity() string {
	if r.Version != "" {
		return r.Version
	}
	return hex.EncodeToString(r.digest[:16])
}

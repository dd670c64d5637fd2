package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// claims are those of a process beside others, which have some sources.
type claims struct {
	mu    sync.Mutex
	taken map[string]bool
}

var _ source.Claims = (*claims)(nil)

// Claim implements [source.Claims].
func (c *claims) Claim(ctx context.Context, name string) (claimed context.Context, release func(), err error) {
	if c.others(name) {
		return nil, nil, &source.ClaimedError{Source: name, Holder: "another"}
	}
	return ctx, func() {}, nil
}

// others reports whether another process has a source.
func (c *claims) others(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[name]
}

// take has another process take a source, or let go of it.
func (c *claims) take(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken == nil {
		c.taken = map[string]bool{}
	}
	c.taken[name] = !c.taken[name]
}

// give has the other processes let go of everything.
func (c *claims) give() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.taken)
}

// claim has another process take a source, or let go of it. What could not be
// removed until then is removed soon.
func (p *play) claim(s step) {
	name := []string{"a", "b", "c", "d"}[s.Which%4]
	if p.process != nil && s.Which < 6 {
		name = p.present[s.Which%len(p.present)].Name
	}
	p.claims.take(name)
	if !p.claims.others(name) {
		p.calm = false
		time.Sleep(removeAgain + time.Millisecond)
	}
}

// detour has a source leave that another process has, so that it stops and its
// records stay, and come back when its registry says something else.
func (p *play) detour(s step) {
	at := s.Which % len(p.wanted)
	of := p.wanted[at]
	if len(p.wanted) == 1 || p.claims.others(of.Name) {
		return
	}
	p.claims.take(of.Name)
	p.reload(slices.Delete(slices.Clone(p.wanted), at, at+1))
	p.edit(step{What: "put", Registry: of.Registry, Objects: s.Objects, Report: "silent"})
	p.revert()
	p.claims.take(of.Name)
	p.calm = false
}

// revert is the configuration before the last one: what left by that comes back,
// perhaps before it was gone.
func (p *play) revert() {
	if p.former != nil {
		p.reload(p.former)
	}
}

// restart has the application begin again with another configuration: a source
// has another name by then, or is not in it.
func (p *play) restart(s step) {
	wanted := p.renamed(s.Which)
	if s.Which >= 5 && len(p.wanted) > 1 {
		at := s.Which % len(p.wanted)
		wanted = slices.Delete(slices.Clone(p.wanted), at, at+1)
	}
	p.stop(s.Keep)
	p.wanted = wanted
	p.begin()
}

package servicecenter

import (
	"maps"
	"time"
)

const (
	// settling is how long changes gather before they are shown, and gathered the number that
	// is shown at once.
	settling = 300 * time.Millisecond
	gathered = 800
	// window is how long a deletion is held back, in case the instance comes again, and the
	// interval of the checks for due deletions.
	window = 2 * time.Second
	// Self-preservation begins when at least this share of more than so many instances is
	// gone. It ends for an instance after its own time to live.
	preserveShare = 0.8
	preserveMin   = 5
	preserveMax   = 10 * time.Minute
)

// change is a change of an instance in the backend.
type change struct {
	action string
	at     serviceID
	held   held
}

func (c change) instance() instanceID { return instanceID{c.at, c.held.ID} }

// pipeline passes changes from the backend to a replica's view. Changes are shown a little
// later, deletions later still, and hardly any if most instances disappear.
type pipeline struct {
	owner      *Server
	deleted    map[instanceID]*deletion
	preserving bool
	watching   *time.Timer // of the deletions; nil if there is none to watch
	ready      []change
	settle     *time.Timer
}

type deletion struct {
	change change
	left   time.Duration // to be held while preserving
}

func newPipeline(owner *Server) *pipeline {
	return &pipeline{owner: owner, deleted: map[instanceID]*deletion{}}
}

// take begins the way of a change.
func (p *pipeline) take(c change) {
	if p.owner.config.Prompt {
		p.owner.show(c)
		return
	}
	if c.action != Delete {
		delete(p.deleted, c.instance())
		p.pass(c)
		return
	}
	if p.deleted[c.instance()] == nil {
		p.deleted[c.instance()] = &deletion{c, timeToLive(c.held.Instance)}
	}
	p.guard()
}

func timeToLive(i *Instance) time.Duration {
	ttl := time.Duration(i.HealthCheck.Interval*(i.HealthCheck.Times+1)) * time.Second
	if ttl <= 0 {
		return preserveMax
	}
	return min(ttl, preserveMax)
}

func (p *pipeline) guard() {
	if total := p.owner.cache.count(); total > preserveMin && float64(len(p.deleted)) >= preserveShare*float64(total) {
		p.preserving = true
	}
	if p.watching == nil {
		p.watching = p.owner.after(window, p.look)
	}
}

// look lets the deletions pass that are not to be held any longer.
func (p *pipeline) look() {
	p.watching = nil
	for _, d := range maps.Clone(p.deleted) {
		d.left -= window
		if !p.preserving || d.left <= 0 {
			delete(p.deleted, d.change.instance())
			p.pass(d.change)
		}
	}
	if len(p.deleted) == 0 {
		p.preserving = false
		return
	}
	p.watching = p.owner.after(window, p.look)
}

// pass gathers a change to be shown when it has become quiet.
func (p *pipeline) pass(c change) {
	p.ready = append(p.ready, c)
	if len(p.ready) >= gathered {
		p.flush()
		return
	}
	if p.settle != nil {
		p.settle.Stop()
		delete(p.owner.timers, p.settle)
	}
	p.settle = p.owner.after(settling, p.flush)
}

func (p *pipeline) flush() {
	ready := p.ready
	p.ready = nil
	for _, c := range ready {
		p.owner.show(c)
	}
}

package laws_test

import (
	"context"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/model"
)

// happen makes a step happen, if it can just now.
func (p *play) happen(s step) {
	switch s.What {
	case "put", "remove", "drop", "empty", "back", "fault":
		p.edit(s)
	case "mode":
		p.registries[s.Registry].turn(s.Mode)
	case "endpoint":
		p.endpoint(s)
	case "secret":
		if p.process != nil {
			p.secret(s)
		}
	case "churn":
		p.churn(s)
	case "wave":
		p.wave(s)
	case "rollout":
		p.rollout(s)
	case "halves":
		p.halves(s)
	case "comeback":
		p.comeBack(s)
	case "wait":
		p.calm = false
		time.Sleep(s.Wait)
	case "start":
		if p.process == nil {
			p.wanted = s.Sources
			p.begin()
		}
	case "connect":
		if p.process != nil && len(p.clients) < 5 {
			p.connect(s.Client)
		}
	default:
		switch {
		case p.process == nil:
			p.begin()
		case s.What == "outage":
			p.outage(s)
		case s.What == "revert":
			p.revert()
		case s.What == "baseline":
			p.hand(s)
		case s.What == "restart":
			p.restart(s)
		case s.What == "reload":
			p.reload(s.Sources)
		case s.What == "rename":
			p.reload(p.renameTo(s))
		case s.What == "rotate":
			p.reload(p.rotated(s.Which))
		case s.What == "release":
			p.release(p.present[s.Which%len(p.present)].Name)
		case s.What == "stop", s.What == "kill":
			p.stop(s.What == "kill")
			p.calm = false
		default:
			p.act(s, p.clients[s.Which%len(p.clients)])
		}
	}
}

// outage has the application begin again while a registry cannot be read, and
// wait for it in vain. It is one that may be done without, if there is one.
func (p *play) outage(s step) {
	at := max(slices.IndexFunc(p.wanted, func(e entry) bool { return e.Optional }), 0)
	r := p.registries[p.wanted[at].Registry]
	r.turn(s.Mode)
	p.stop(s.Keep)
	p.begin()
	time.Sleep(app.OptionalWait)
}

func (p *play) act(s step, c *client) {
	switch {
	case c.away || s.What == "reconnect":
		p.reconnect(c, s.Keep || s.What != "reconnect")
	case s.What == "disconnect":
		c.Disconnect()
		c.away = true
	case s.What == "hold" && c.Slow:
		c.Hold()
		c.holds = true
	case s.What == "answer":
		c.Release()
		c.holds = false
	}
}

// edit changes what a registry says.
func (p *play) edit(s step) {
	r, gone := p.registries[s.Registry], p.gone[s.Registry]
	var concerned, removed []model.Ref
	change := func() {
		refs := r.refs()
		switch some := len(refs) > 0; {
		case s.What == "put":
			for _, o := range s.Objects {
				r.objects[o.Record.Ref] = o
				delete(r.faults, o.Record.Ref)
				concerned = append(concerned, o.Record.Ref)
			}
		case s.What == "back":
			for ref, o := range gone {
				if now, there := r.objects[ref]; !there || len(now.Owned) == 0 && len(o.Owned) > 0 {
					r.objects[ref] = o
					concerned = append(concerned, ref)
				}
			}
			clear(gone)
		case s.What == "drop": // of all but a few
			removed = slices.DeleteFunc(refs, func(ref model.Ref) bool { return s.Which < 3 && ref == refs[s.Which%len(refs)] })
		case !some:
		case s.What == "remove":
			removed = []model.Ref{refs[s.Which%len(refs)]}
		case s.What == "empty":
			ref := refs[s.Which%len(refs)]
			gone[ref] = r.objects[ref]
			r.objects[ref] = model.Object{Record: r.objects[ref].Record}
			concerned = []model.Ref{ref}
		case s.What == "fault":
			concerned = []model.Ref{refs[s.Which%len(refs)]}
			if r.faults[concerned[0]] = s.Fault; s.Fault == sound {
				delete(r.faults, concerned[0])
			}
		}
		for _, ref := range removed {
			gone[ref] = r.objects[ref]
			delete(r.objects, ref)
			delete(r.faults, ref)
		}
	}
	r.become(change)
	slices.SortFunc(concerned, model.Ref.Compare)
	switch s.Report {
	case "listed":
		r.become(func() {}, notice{})
	case "reported":
		change := r.report(slices.Compact(concerned), removed)
		r.become(func() {}, notice{change})
	}
}

// release is an operator's word.
func (p *play) release(name string) {
	p.settle()
	m := p.seat(name)
	// After a restart it waits for its successors again, and is not held before these are listed.
	held := m != nil && m.leaving && !m.since.IsZero() && !slices.ContainsFunc(m.waits, p.awaited)
	for _, s := range p.process.Inside().Sources() {
		if s.Status().Name != name {
			continue
		}
		if _, err := s.Release(context.Background()); err != nil {
			p.Fatalf("release: %v", err)
		}
		p.mu.Lock()
		if held {
			p.departs(m)
			p.noteState()
			p.mu.Unlock()
			continue
		}
		p.mirrors[name].release()
		p.giveUp(name)
		p.noteState()
		p.mu.Unlock()
	}
}

// begin starts the application again.
func (p *play) begin() {
	p.start()
	p.calm = false
}

package envoy

import (
	"cmp"
	"context"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push"
)

// Translator translates snapshots as its settings demand. The configuration is decoded into
// the settings before the first call of any method but Validate and Domain.
type Translator struct {
	policy.Settings
}

// NewTranslator returns a translator with the default settings.
func NewTranslator() *Translator { return &Translator{*policy.New()} }

// Types is [Types] for the settings.
func (t *Translator) Types(debounce func(typeName string, m push.Mode) push.Debounce) []push.TypeSpec {
	specs, prepared := Types(debounce), t.Prepare()
	specs[RouteType].Void = func(name string) push.Encoded { return voidRoutes(prepared, name) }
	return specs
}

// Begin returns the function that makes the steps of one output. The function is [Step] for
// the settings.
func (t *Translator) Begin() func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update {
	prepared := t.Prepare()
	var known *definitions
	step := func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update {
		known = known.after(now, c, prepared)
		return stepOf(prepared, now, c, complete, root, known)
	}
	if t.LEDS.Above > 0 {
		spread := newSteps(step, t.LEDS)
		// The members of a collection are the same for all clients, have no priorities, and
		// edges do not avoid them.
		spread.whole = func(s *catalog.Service, port uint32) bool {
			return len(prepared.Edge) > 0 && s.Endpoints(port).Counts().Local > 0 || prepared.Of(s.Key.Host).FailsOver() || prepared.Networks != nil && s.Endpoints(port).Counts().Networked > 0
		}
		return spread.step
	}
	return step
}

// NotOffered returns a function that says which services clients of a kind do not get, as
// [NotOffered] does, and how many endpoints only clients of the same network get.
func (t *Translator) NotOffered() func(*catalog.Service, string) string {
	p := t.Prepare()
	return func(service *catalog.Service, kind string) string {
		return cmp.Or(reach.NotOffered(service, kind), notEntered(p, service, kind))
	}
}

// Conflicts returns the conflicts of each service of the snapshot over things that sidecars
// and edges can have from one service only. They are the losses of the layouts themselves:
// those of listeners, of routes, and of ports of the edge, as every namespace has them that
// may differ from others. They are found when they are asked for, so changes cost nothing. The
// conflicts at a port are kept until a service of the port changes. Once ctx has ended nothing
// more is looked for, and what is returned may lack some.
func (t *Translator) Conflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	c := conflicts{ctx: ctx, deciders: map[workloadIn]map[uint32]catalog.InboundPort{}, now: now, domain: t.ClusterDomain, edge: t.Edge.Ports}
	if len(t.Edge.Ports) > 0 {
		c.folded = foldedHosts(now)
	}
	return c.of
}

// LoopbackConflicts is [Translator.Conflicts] for sidecars with INTERCEPTION_MODE NONE. There
// all services of a port share one listener on loopback, and connections to it do not say
// which address they were meant for.
func (t *Translator) LoopbackConflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	c := conflicts{ctx: ctx, now: now}
	return func(s *catalog.Service) (list []catalog.Conflict) {
		for _, port := range s.Ports {
			if p := (node.Proxy{Mode: node.None}); p.Opens(port.Number) {
				list = append(list, c.at(port.Number, p)[s.Key]...)
			}
		}
		return list
	}
}

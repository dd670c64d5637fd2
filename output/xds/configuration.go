package xds

import (
	"log/slog"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// configuration publishes the types of configuration from the first request for one on.
// Before that it only keeps the newest snapshot.
type configuration struct {
	producer *push.Producer
	begin    func() Steps
	root     string
	names    []string
	log      *slog.Logger

	mu       sync.Mutex
	wanted   bool
	steps    Steps             // nil until then
	newest   *catalog.Snapshot // nil until one is published
	sources  sources           // of the newest
	reported map[string]string // the logged omissions
}

// sources is the completeness of a snapshot's sources.
type sources struct {
	complete  bool // each source was listed
	remembers bool // as of [world.Update], likewise waited
	waited    bool
}

func newConfiguration(engine *push.Engine, c *Configuration, debounce func(string, world.Mode) world.Debounce, env output.Env, log *slog.Logger) *configuration {
	specs := c.Types(debounce)
	out := &configuration{producer: engine.ProduceLater(specs), begin: func() Steps { return c.Begin(env.Self) }, root: env.RootNamespace, log: log, reported: map[string]string{}}
	for _, spec := range specs {
		out.names = append(out.names, spec.Name)
	}
	return out
}

// publish takes the next snapshot.
func (c *configuration) publish(s *catalog.Snapshot, change catalog.Change, has sources) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest, c.sources = s, has
	if c.wanted {
		c.step(change)
	}
}

// demand starts publishing.
func (c *configuration) demand() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted {
		return
	}
	c.wanted = true
	if c.newest != nil {
		c.step(catalog.Change{})
	}
}

func (c *configuration) step(change catalog.Change) {
	if c.steps == nil {
		c.steps = c.begin()
	}
	u := c.steps.Step(c.newest, change, c.sources.complete, c.root)
	u.Remembers, u.Waited = c.sources.remembers, c.sources.waited
	c.producer.Publish(u)
	left := map[string]string{}
	for object, reason := range c.steps.LeftOut() {
		if left[object] = reason; c.reported[object] != reason {
			c.log.Warn("object is not sent to control planes", "object", object, "err", reason)
		}
	}
	c.reported = left
}

// metric counts the omitted objects.
func (c *configuration) metric() output.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	return output.Metric{
		Name: "isthmus_configuration_left_out", Help: "Objects that control planes are not offered, because Istio would not take them.",
		Labels: []output.Label{{Name: "output", Value: "xds"}}, Value: float64(len(c.reported)),
	}
}

package mcp

import (
	"context"
	"log/slog"

	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors the resources of one peer. [Config.Open] makes it.
type Source struct {
	source.ExchangeStatus

	config Config
	env    source.Env

	// The fields below outlive a run.
	holding *holding
	resume  bool     // requests contain the held versions
	unknown []string // collections that the peer does not know
	waited  bool     // the missing peer was reported once
	away    turned
	from    string // address of the peer that dialled

	rejected rejected
}

var (
	_ source.Source     = (*Source)(nil)
	_ source.Listener   = (*Source)(nil)
	_ source.Exchanging = (*Source)(nil)
)

func newSource(c Config, env source.Env) *Source {
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	c.pace = c.pace.withDefaults()
	env.Memory.Keep()
	return &Source{config: c, env: env, resume: true}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.holding == nil {
		s.holding = newHolding(s.config.collections(), s.config.bounds(s.env.Memory), s.env.Self)
	}
	s.holding.drop(s.unknown)
	if s.config.Listen != "" {
		return s.listen(ctx, sink)
	}
	return s.dial(ctx, sink)
}

// session runs a session on a stream until the stream ends.
func (s *Source) session(ctx context.Context, w wire, end context.CancelFunc, sink source.Sink) error {
	one := &session{Source: s, wire: w, end: end, sink: sink}
	return one.run(ctx)
}

// peer names the peer for people.
func (s *Source) peer() string {
	if s.config.Listen != "" {
		return "the source at " + s.from
	}
	return "the source " + s.config.Address
}

// notices returns notices beside the ones about collections.
func (s *Source) notices() (list []source.Notice) {
	for _, name := range s.unknown {
		list = append(list, source.Notice{Object: "collection " + name, Text: "the peer does not have it, so it is not asked for; name those that it has in collections"})
	}
	return append(list, s.away.notices()...)
}

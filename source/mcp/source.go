package mcp

import (
	"context"
	"log/slog"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors the resources of one peer. [Config.Open] makes it.
type Source struct {
	source.ExchangeStatus

	config   Config
	env      source.Env
	verifier *identity.Verifier // of peers that dial; may be nil

	// The fields below outlive a run.
	holding *holding
	waited  bool // the missing peer was reported once
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
	return &Source{config: c, env: env}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.holding == nil {
		s.holding = newHolding(s.config.collections(), s.config.bounds(s.env.Memory), s.env.Self)
	}
	if s.config.Listen != "" {
		return s.listen(ctx, sink)
	}
	return s.dial(ctx, sink)
}

// session returns a session on a stream of the peer.
func (s *Source) session(w wire, end context.CancelFunc, sink source.Sink) *session {
	return &session{
		ExchangeStatus: &s.ExchangeStatus, holding: s.holding, wire: w, end: end, sink: sink,
		settings: settings{
			env: s.env, peer: s.peer(), others: &s.away, pace: s.config.pace, incremental: s.config.Incremental,
			chosen: len(s.config.Collections) > 0, largest: s.config.largest(s.env.Memory),
		},
	}
}

// peer names the peer for people.
func (s *Source) peer() string {
	if s.config.Listen != "" {
		return "the source at " + s.from
	}
	return "the source " + s.config.Address
}

package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors one cluster.
type Source struct {
	config Config
	env    source.Env
	pace   pace
	target func() (*rest.Config, error) // called with each run
	plugin kubeconfig.Plugin            // keeps its waits between runs

	events   *kubeevents.Recorder // nil if nothing may be written
	reported bool                 // rejections, since the start
}

var (
	_ source.Source            = (*Source)(nil)
	_ source.RejectionReporter = (*Source)(nil)
)

// pace bounds waits.
type pace struct {
	first   time.Duration // for the first answer for each kind
	failing time.Duration // how long a kind fails before that counts
	gather  time.Duration // how long changes are gathered
	silence silence
}

var usual = pace{
	first: 2 * time.Minute, failing: 5 * time.Second, gather: 10 * time.Millisecond,
	silence: silence{usual: 10 * time.Minute, marked: 3 * time.Minute, late: 10 * time.Second, retry: 2 * time.Second},
}

// New returns a source for a configuration that is valid.
func New(c Config, env source.Env) *Source {
	s := &Source{config: c, env: env, pace: usual, target: c.target}
	if !env.Once && c.writesEvents() {
		s.events = kubeevents.New(cmp.Or(env.Log, slog.New(slog.DiscardHandler)))
	}
	return s
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	target, err := s.target()
	if err != nil {
		return err
	}
	through, err := s.plugin.Transport(target)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	kinds, err := s.config.kinds(target, through)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	client, err := kubeevents.NewClient(target, through, s.env.Instance)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	r := newRun(s.env, s.pace, sink, newState(newObjects(&s.config), kinds))
	following, end := context.WithCancel(ctx)
	var feeds sync.WaitGroup
	defer feeds.Wait()
	defer end()
	feeds.Go(func() {
		defer r.notePanic()
		s.events.Run(following, client)
	})
	for _, k := range kinds {
		f := &feed{kind: k, into: r.state, woken: r.woken, reception: newReception(s.pace.silence)}
		r.feeds = append(r.feeds, f)
		feeds.Go(func() {
			defer r.notePanic()
			f.run(following)
		})
		feeds.Go(func() {
			defer r.notePanic()
			f.listen(following)
		})
	}
	if err := r.follow(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	return context.Cause(ctx)
}

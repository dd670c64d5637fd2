package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const welcome = `Isthmus demo: everything in this process, on loopback. Three services with six
gRPC backends, %[4]s,
the control plane, and a gRPC client that gets its endpoints over xDS and calls
each service every %[1]s.

  registry   %[5]s
  config     %[2]s/isthmus.yaml
  look       isthmus sources  --admin %[3]s
             isthmus services --admin %[3]s
             isthmus clients  --admin %[3]s`

const invitation = `
Now it is yours: %s Another
terminal may ask: isthmus services --admin %s %s
Ctrl-C ends the demo and removes the folder.
`

// show makes the tour, and shows its progress.
func (s *stage) show(ctx context.Context, c Config, begun time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	var touring sync.WaitGroup
	defer touring.Wait()
	defer cancel()

	said, ended := make(chan string), make(chan error, 1)
	t := &tour{stage: s, begun: begun, limit: c.limit, pause: c.pause, say: func(text string) {
		select {
		case said <- text:
		case <-ctx.Done():
		}
	}}
	touring.Go(func() { ended <- t.run(ctx) })

	screen := &screen{out: c.Out, live: c.Terminal && !c.Once, rows: c.Rows}
	defer screen.close()
	registry, at := s.places()
	screen.say(fmt.Sprintf(welcome, ms(pace), s.dir, s.control.admin(), registry, at))
	if c.Once {
		return s.once(ctx, screen, said, ended)
	}
	return s.live(ctx, screen, said, ended)
}

// places returns the names of the registries, and where they are.
func (s *stage) places() (registry, at string) {
	w := s.registry.words()
	if s.second == nil {
		return w.registry, w.at
	}
	other := s.second.words()
	return w.registry + " and " + other.registry, w.at + "\n             " + other.at
}

// once shows a tour without pauses. It waits for one of
//
//   - a text of the tour;
//   - the end of the tour, which ctx may have caused;
//   - the unexpected end of the control plane.
func (s *stage) once(ctx context.Context, screen *screen, said <-chan string, ended <-chan error) error {
	for {
		select {
		case text := <-said:
			screen.say(text)
		case err := <-ended:
			if err != nil {
				return interrupted(err)
			}
			screen.say("\n" + s.look(ctx).table())
			return nil
		case <-s.control.ended:
			return s.lost()
		}
	}
}

// live shows the tour, and the state after it. It waits for one of
//
//   - a text of the tour;
//   - the end of the tour, after which everything goes on;
//   - the time of the next look;
//   - the unexpected end of the control plane;
//   - the end of ctx.
func (s *stage) live(ctx context.Context, screen *screen, said <-chan string, ended <-chan error) error {
	again := time.NewTicker(refresh)
	defer again.Stop()
	var result error
	for {
		select {
		case text := <-said:
			screen.say(text)
		case result = <-ended:
			screen.say(fmt.Sprintf(invitation, s.registry.words().invitation, s.control.admin(), services[0].host()))
		case <-again.C:
			screen.show(s.look(ctx))
		case <-s.control.ended:
			return s.lost()
		case <-ctx.Done():
			if errors.Is(result, context.Canceled) {
				return nil
			}
			return result
		}
	}
}

func (s *stage) lost() error {
	return fmt.Errorf("the control plane has ended: %w", cmp.Or(s.control.err, errors.New("it was stopped")))
}

func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted before the tour was over")
	}
	return err
}

// look returns the client's observations and the state in the admin API.
func (s *stage) look(ctx context.Context) view {
	v := s.ledger.look(time.Now())
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	v.sources, v.trouble = s.control.sources(ctx)
	return v
}

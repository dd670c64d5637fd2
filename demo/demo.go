package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// refresh is how often the view looks again.
	refresh = 250 * time.Millisecond
	// aPause is the time for people to read the text of a step, and to watch it.
	aPause = 4 * time.Second
)

// Config says how the demo runs.
type Config struct {
	Version  string
	Out      io.Writer
	Terminal bool          // Out is one: a table is kept up to date in place
	Rows     func() int    // of the terminal as it is now; nil, or 0, if that is not known
	Once     bool          // end after the tour, and make no pauses
	Deadline time.Duration // for the client to observe a step; default 10 s
	Registry string        // an element of [Registries]; the first if empty

	envoy string                       // program; default the one on the PATH, if any
	write writer                       // of the registry; default [replaceFile]
	pause time.Duration                // before and after each step; none if Once
	limit func(step int) time.Duration // of a step; default Deadline
}

func (c Config) withDefaults() Config {
	if c.Deadline == 0 {
		c.Deadline = 10 * time.Second
	}
	if c.limit == nil {
		c.limit = func(int) time.Duration { return c.Deadline }
	}
	if c.Rows == nil {
		c.Rows = func() int { return 0 }
	}
	if c.write == nil {
		c.write = replaceFile
	}
	if c.envoy == "" {
		c.envoy, _ = exec.LookPath("envoy")
	}
	if c.Once {
		c.pause = 0
	} else if c.pause == 0 {
		c.pause = aPause
	}
	return c
}

// Run runs the demo until ctx ends, or to the end of the tour if c asks for no more. The
// error names the step that the client did not observe.
func Run(ctx context.Context, c Config) (err error) {
	c, begun := c.withDefaults(), time.Now()
	dir, err := os.MkdirTemp("", "isthmus-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	s, err := build(ctx, dir, c)
	defer s.close()
	if err != nil {
		return err
	}
	return s.show(ctx, c, begun)
}

// Registries are the kinds of registry that a demo may be about.
func Registries() []string { return []string{"files", "servicecenter"} }

func (c Config) medium(dir string) (medium, error) {
	switch c.Registry {
	case "", "files":
		return newFiles(filepath.Join(dir, "registry"), c.write)
	case "servicecenter":
		return newCenter()
	default:
		return nil, fmt.Errorf("there is no registry %q to show: choose one of %s", c.Registry, strings.Join(Registries(), ", "))
	}
}

// services are the registry's initial services, with two instances each.
var services = []service{
	{name: "cart"},
	{name: "payments"},
	{name: "reviews", selects: true},
}

// stage is everything the demo consists of. A part that was not built is nil.
type stage struct {
	dir      string
	fleet    *fleet
	registry *registry
	second   *second // nil if there is only one registry
	lacking  error   // why there is no second one beside a folder
	ledger   *ledger
	control  *control
	client   *client
	envoy    *envoy // nil until its step

	envoyProgram string // empty if there is none
}

// build starts the parts in the order of their dependencies. After an error, the stage has
// the started parts, and is to be closed.
func build(ctx context.Context, dir string, c Config) (*stage, error) {
	s := &stage{dir: dir, fleet: &fleet{}, envoyProgram: c.envoy}
	m, err := c.medium(dir)
	if err != nil {
		return s, err
	}
	s.registry = newRegistry(m)
	s.ledger = newLedger(s.changed)
	if f, is := m.(*files); is {
		s.addSecond(ctx, f)
	}
	for _, service := range services {
		for n := range 2 {
			b, err := s.enlist(ctx, service, n+1)
			if err != nil {
				return s, err
			}
			s.registry.put(service, b.instance())
		}
		if _, err := s.registry.save(service); err != nil {
			return s, err
		}
	}
	if s.control, err = startControl(ctx, dir, c.Version, s.sources()); err != nil {
		return s, err
	}
	s.client, err = startClient(ctx, s.control.xds(), s.registry.target, s.ledger)
	return s, err
}

// addSecond starts a second registry beside a folder, if the machine can have one.
func (s *stage) addSecond(ctx context.Context, f *files) {
	shared := services[1]
	if s.second, s.lacking = newSecond(ctx, shared); s.lacking != nil {
		return
	}
	f.ports[shared.name] = s.second.number()
	for _, b := range s.second.waiting.running {
		s.ledger.introduce(b.address(), shared.name, b.name)
	}
}

// changed returns the time of the last change of a registry before a time.
func (s *stage) changed(before time.Time) time.Time {
	at := s.registry.changed(before)
	if s.second != nil {
		if second := s.second.changed(before); second.After(at) {
			return second
		}
	}
	return at
}

// sources are the entries of the sources in the configuration.
func (s *stage) sources() string {
	if s.second == nil {
		return s.registry.entry()
	}
	return s.registry.entry() + s.second.sourceEntry()
}

// enlist starts a backend; the registry does not know it yet.
func (s *stage) enlist(ctx context.Context, of service, n int) (*backend, error) {
	b, err := s.fleet.start(ctx, fmt.Sprintf("%s-%d", of.name, n), s.registry.place(n, s.registry.instances[of.name]))
	if err == nil {
		s.ledger.introduce(b.address(), of.name, b.name)
	}
	return b, err
}

// close ends the parts in such an order that none sees another go.
func (s *stage) close() {
	if s.client != nil {
		s.client.close()
	}
	if s.envoy != nil {
		s.envoy.close()
	}
	if s.control != nil {
		s.control.close()
	}
	s.fleet.close()
	if s.second != nil {
		s.second.close()
	}
	if s.registry != nil {
		s.registry.close()
	}
}

package file

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Settings = (*Config)(nil)

// Config says what to read.
type Config struct {
	// Path is a folder, read with everything below it, or a single file.
	Path string `json:"path"`

	stored    func() iter.Seq[model.Record] // of the source, when it begins; nil for nothing
	memory    *budget.Budget                // for reading files; nil is without bound
	folders   int                           // that are read at most; mostFolders unless set
	pace      pace                          // zero fields take their defaults
	unwatched bool                          // only read again and again; for tests
	events    <-chan fsnotify.Event         // of a source that is not watched; for tests
}

// Kind is the row by which this registry is known. Nobody is spared by a long
// wait for a folder that is not there: the disk is our own.
func Kind() source.Kind {
	return source.Kind{Name: "file", New: func() source.Settings { return &Config{} }, MaxBackoff: 5 * time.Second, Edited: true, Local: true}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	if c.Path == "" {
		return errors.New("path: missing: name the folder or the file to read")
	}
	return nil
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	if !filepath.IsAbs(c.Path) {
		c.Path = filepath.Join(dir, c.Path)
	}
}

// Check implements [source.Settings].
func (c *Config) Check() error {
	if _, err := os.Stat(c.Path); err != nil {
		return fmt.Errorf("path: %q cannot be read: %w; create it, or name another", c.Path, errors.Unwrap(err))
	}
	return nil
}

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string { return nil }

// Folder is what the source follows, so that nothing else is written there.
func (c *Config) Folder() string { return c.Path }

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source {
	return New(c.with(env), env.Log)
}

// with returns the settings with what the source is given beside them.
func (c Config) with(env source.Env) Config {
	c.stored, c.memory = env.Stored, env.Memory
	return c
}

// watch returns what says that something in the folder may have changed.
func (c *Config) watch(log *slog.Logger) *dirwatch.Watcher {
	if c.unwatched {
		return dirwatch.Fed(c.events)
	}
	return dirwatch.New(log)
}

// pace is how fast a folder is followed.
type pace struct {
	quiet  time.Duration // without events, after which a change is taken to be complete
	most   time.Duration // that a change waits although events keep coming
	settle time.Duration // that a file must stay empty before it counts as empty
	gone   time.Duration // that files must be missing to be taken for gone
	rescan time.Duration // between readings of everything
}

func (p pace) withDefaults() pace {
	def := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	def(&p.quiet, 50*time.Millisecond)
	def(&p.most, 500*time.Millisecond)
	def(&p.settle, time.Second)
	def(&p.gone, 2*time.Second)
	def(&p.rescan, 30*time.Second)
	return p
}

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

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Settings = (*Config)(nil)

// Config selects the folder to read.
type Config struct {
	// Path is a folder, read with everything below it, or a single file.
	Path string `json:"path"`
	// Carry names the kinds that are passed on to control planes unchanged; none by default.
	Carry istio.Carry `json:"carry"`

	domain    string                        // of the cluster's DNS; empty for the default
	stored    func() iter.Seq[model.Record] // of the source, when it begins; nil for nothing
	memory    *budget.Budget                // for reading files; nil is without bound
	folders   int                           // maximum to read; mostFolders unless set
	pace      pace                          // zero fields take their defaults
	unwatched bool                          // only read again and again; for tests
	events    <-chan fsnotify.Event         // of a source that is not watched; for tests
}

// Kind returns the row of this registry in the table of kinds. The backoff is short:
// retrying a missing folder burdens only the local disk.
func Kind() source.Kind {
	return source.Kind{Name: "file", New: func() source.Settings { return &Config{} }, MaxBackoff: 5 * time.Second, Edited: true, Local: true}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	err := c.Carry.Validate()
	if c.Path == "" {
		err = errors.Join(errors.New("path: missing; give the folder or file to read"), err)
	}
	return err
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

// InCluster sets the domain of the DNS of the cluster that the short names in the manifests are
// of. It is the default until it is set.
func (c *Config) InCluster(domain string) { c.domain = domain }

// Folder returns the path that the source follows, so that nothing else is written there.
func (c *Config) Folder() string { return c.Path }

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source {
	return New(c.with(env), env.Log)
}

// with returns the settings with the parts of the environment that the source needs.
func (c Config) with(env source.Env) Config {
	c.stored, c.memory = env.Stored, env.Memory
	return c
}

// watch returns the watcher that reports possible changes in the folder.
func (c *Config) watch(log *slog.Logger) *dirwatch.Watcher {
	if c.unwatched {
		return dirwatch.Fed(c.events)
	}
	return dirwatch.New(log)
}

// pace sets the times by which a folder is followed.
type pace struct {
	quiet  time.Duration // without events, after which a change counts as complete
	most   time.Duration // longest wait of a change while events keep coming
	settle time.Duration // how long a file must stay empty to count as empty
	gone   time.Duration // how long files must be missing to count as gone
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

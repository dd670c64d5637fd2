// Package tally is an output that keeps one line in a file: how many services and
// endpoints there are. It shows that an output is one folder and one row of the
// table of kinds.
package tally

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
)

// Config is what the configuration says of the output.
type Config struct {
	Path string `json:"path"`
}

var _ output.Settings = (*Config)(nil)

// OutputKind is the row in the table of kinds.
func OutputKind() output.Kind {
	return output.Kind{Name: "tally", New: func() output.Settings { return &Config{} }}
}

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	if c.Path == "" {
		return errors.New("path: missing; name the file to write")
	}
	return nil
}

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	if !filepath.IsAbs(c.Path) {
		c.Path = filepath.Join(dir, c.Path)
	}
}

// Check implements [output.Settings].
func (c *Config) Check() error { return nil }

// Warnings implements [output.Settings].
func (c *Config) Warnings() []string { return nil }

// String implements [output.Settings].
func (c *Config) String() string { return "to " + c.Path }

// Open implements [output.Settings].
func (c *Config) Open(context.Context, output.Env) (output.Output, error) {
	return &tally{path: c.Path, changed: make(chan struct{}, 1)}, nil
}

// tally writes the newest counts: one that is slow skips to them.
type tally struct {
	path    string
	newest  atomic.Pointer[catalog.Snapshot]
	changed chan struct{}
	writes  atomic.Uint64
}

// Publish implements [output.Output].
func (t *tally) Publish(s *catalog.Snapshot, _ catalog.Change, _ bool) {
	t.newest.Store(s)
	select {
	case t.changed <- struct{}{}:
	default: // it will be looked at
	}
}

// Run implements [output.Output].
func (t *tally) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.changed:
		}
		totals := t.newest.Load().Totals()
		line := fmt.Sprintf("%d services, %d endpoints\n", totals.Services, totals.Endpoints)
		if err := os.WriteFile(t.path, []byte(line), 0o600); err != nil {
			return err
		}
		t.writes.Add(1)
	}
}

// Report implements [output.Output].
func (t *tally) Report() output.Report {
	return output.Report{Metrics: []output.Metric{
		{Name: "isthmus_tally_writes_total", Help: "Times the file was written.", Counter: true, Value: float64(t.writes.Load())},
	}}
}

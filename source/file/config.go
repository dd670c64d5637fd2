package file

import (
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Config says what to read.
type Config struct {
	// Path is a folder, read with everything below it, or a single file.
	Path string `json:"path"`

	pace      pace                  // zero fields take their defaults
	unwatched bool                  // only read again and again; for tests
	events    <-chan fsnotify.Event // of a source that is not watched; for tests
}

// Validate reports what is wrong with the configuration, with the field. It
// does not look at the disk: a folder may come later.
func (c Config) Validate() error {
	if c.Path == "" {
		return errors.New("path: missing: name the folder or the file to read")
	}
	return nil
}

// pace is how fast a folder is followed.
type pace struct {
	quiet  time.Duration // without events, after which a change is taken to be complete
	most   time.Duration // that a change waits although events keep coming
	settle time.Duration // that a file must stay empty to be believed
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

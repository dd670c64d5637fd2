package file

import (
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/source"
)

// With returns the configuration of a source that is given that, too.
func (c Config) With(env source.Env) Config { return c.with(env) }

// Pace returns the configuration with its own timing; zero means the default.
func (c Config) Pace(quiet, most, settle, rescan time.Duration) Config {
	c.pace = pace{quiet: quiet, most: most, settle: settle, rescan: rescan, gone: c.pace.gone}
	return c
}

// Folders returns the configuration of a source that reads so many folders at most.
func (c Config) Folders(most int) Config {
	c.folders = most
	return c
}

// Gone returns the configuration with how long a file must be missing.
func (c Config) Gone(after time.Duration) Config {
	c.pace.gone = after
	return c
}

// Unwatched returns the configuration of a source that gets no events, so that
// it can run in a test's own time.
func (c Config) Unwatched() Config {
	c.unwatched = true
	return c
}

// Fed returns the configuration of a source that gets its events from a channel
// instead of the system, so that it can run in a test's own time.
func (c Config) Fed(events <-chan fsnotify.Event) Config {
	c.unwatched, c.events = true, events
	return c
}

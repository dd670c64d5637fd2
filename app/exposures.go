package app

import (
	"log/slog"
	"sync"

	"github.com/isthmus-mesh/isthmus/config"
)

// exposures logs the secrets of configurations that other users can read or replace, each cause
// once.
type exposures struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]struct{}
}

func newExposures(log *slog.Logger) *exposures {
	return &exposures{log: log, logged: map[string]struct{}{}}
}

// look looks at the files of a configuration. Nothing waits for it: a file of one source may be on a
// disk that hangs.
func (e *exposures) look(c config.Config) {
	go func() { // until the disks answer
		for _, warning := range config.Exposed(&c) {
			if e.isNew(warning) {
				e.log.Warn("a secret is exposed", "warning", warning)
			}
		}
	}()
}

func (e *exposures) isNew(warning string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := e.logged[warning]
	e.logged[warning] = struct{}{}
	return !known
}

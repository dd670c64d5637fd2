package store

import (
	"cmp"
	"fmt"
)

// DefaultHistory and DefaultHistoryBytes bound the events kept when [Config.History]
// or [Config.HistoryBytes] is zero.
const (
	DefaultHistory      = 100_000
	DefaultHistoryBytes = 64 << 20
)

// Config of a store or a replica. The zero Config is a good one.
type Config struct {
	// History bounds the events kept for watchers that lag; zero means [DefaultHistory].
	// A watcher that falls further behind is reset. A single commit of more events resets
	// every watcher: a new snapshot then costs no more than the commit.
	History int
	// HistoryBytes bounds the memory of these events in the same way, as
	// [model.Record.Size] estimates it; zero means [DefaultHistoryBytes].
	HistoryBytes int
}

// Validate reports a setting the store cannot work with.
func (c Config) Validate() error {
	if c.History < 0 {
		return fmt.Errorf("history: %d is negative; give a number of events, or 0 for %d", c.History, DefaultHistory)
	}
	if c.HistoryBytes < 0 {
		return fmt.Errorf("historyBytes: %d is negative; give a number of bytes, or 0 for %d", c.HistoryBytes, DefaultHistoryBytes)
	}
	return nil
}

func (c Config) withDefaults() Config {
	return Config{cmp.Or(c.History, DefaultHistory), cmp.Or(c.HistoryBytes, DefaultHistoryBytes)}
}

package store

import "fmt"

// DefaultHistory is the number of events kept when [Config.History] is zero.
const DefaultHistory = 100_000

// Config of a store or a replica. The zero Config is a good one.
type Config struct {
	// History bounds the events kept for watchers that lag; zero means
	// [DefaultHistory]. A watcher that falls further behind is reset. So is
	// every watcher by a single commit of more events than that, since a new
	// snapshot then costs no more than the commit would.
	History int
}

// Validate reports a setting the store cannot work with.
func (c Config) Validate() error {
	if c.History < 0 {
		return fmt.Errorf("history: %d is negative; give a number of events, or 0 for %d", c.History, DefaultHistory)
	}
	return nil
}

func (c Config) history() int {
	if c.History == 0 {
		return DefaultHistory
	}
	return c.History
}

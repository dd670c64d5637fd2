package file

import "time"

// Pace returns the configuration with its own timing; zero means the default.
func (c Config) Pace(quiet, most, settle, rescan time.Duration) Config {
	c.pace = pace{quiet, most, settle, rescan}
	return c
}

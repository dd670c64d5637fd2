package file

import (
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// Pace returns the configuration with its own timing; zero means the default.
func (c Config) Pace(quiet, most, settle, rescan time.Duration) Config {
	c.pace = pace{quiet, most, settle, rescan}
	return c
}

// Parse returns the listing of a folder that holds just one file.
func Parse(place string, text []byte) source.Listing {
	r := newRegistry()
	r.apply(map[string]*version{place: parse(place, text)})
	return r.listing(nil)
}

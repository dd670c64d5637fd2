package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/source"
)

// Config is the configuration file as GET /api/v1/config shows it.
type Config struct {
	File  string `json:"file"`  // empty if nothing is reloaded
	State string `json:"state"` // loaded or failed
	// Problems are why the current file is not in use; the last valid configuration is still
	// in force.
	Problems []string  `json:"problems"`
	Loaded   time.Time `json:"loaded"` // when it was last loaded
	Age      string    `json:"age"`    // since then
	// NeedsRestart names the fields that have changed in the file and that this
	// process cannot change.
	NeedsRestart []string `json:"needsRestart"`
	// Leaving are sources that the file no longer names, but whose records are still served.
	Leaving []Leaving `json:"leaving"`
	// Sources are the sources of the configuration in use, in its order.
	Sources []ConfigSource `json:"sources"`
	// Splits are the services whose calls are divided.
	Splits []ConfigSplit `json:"splits,omitempty"`
	// Listen has the addresses to listen at, by their field: "outputs.xds.listen".
	Listen map[string]string `json:"listen"`
}

// ConfigSource is the rights that the configuration in use grants a source. It excludes the
// settings of the source's kind, which may contain secrets.
type ConfigSource struct {
	Name           string                `json:"name"`
	Kind           string                `json:"kind"`
	Required       bool                  `json:"required"` // readiness waits for the source
	Only           source.Only           `json:"only"`
	Owns           source.Owns           `json:"owns"`
	LocalAddresses source.LocalAddresses `json:"localAddresses"`
	Network        source.Network        `json:"network,omitempty"`
}

// Leaving is a source whose records will be removed.
type Leaving struct {
	Source   string   `json:"source"`
	WaitsFor []string `json:"waitsFor"` // sources added with its removal that have not been listed yet
	// Held means that these lack too much of it; the source's own reason has the numbers.
	Held bool `json:"held"`
}

// The states of the configuration file.
const (
	ConfigLoaded = "loaded"
	ConfigFailed = "failed"
)

var (
	reloadSuccess = desc("config_reload_success", "Whether the configuration file as it is now is in use.")
	reloadTime    = desc("config_reload_timestamp_seconds", "When the configuration file was last loaded.")
)

func (c Config) collect(ch chan<- prometheus.Metric) {
	success := 0.0
	if c.State == ConfigLoaded {
		success = 1
	}
	ch <- prometheus.MustNewConstMetric(reloadSuccess, prometheus.GaugeValue, success)
	ch <- prometheus.MustNewConstMetric(reloadTime, prometheus.GaugeValue, float64(c.Loaded.UnixMilli())/1000)
}

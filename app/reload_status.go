package app

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/events"
)

// failed reports a file that cannot be applied.
func (r *reloader) failed(err error) {
	list := problems(err)
	for _, problem := range list {
		r.log.Error("configuration not reloaded, the one before stays in force", "err", problem)
		r.events.Add(events.Event{Kind: events.Configuration, Text: "not reloaded, the one before stays in use: " + problem})
	}
	r.report(func(s *admin.Config) { s.State, s.Problems = admin.ConfigFailed, list })
}

// loaded reports that a file was applied.
func (r *reloader) loaded(p plan) {
	log, before := r.log, r.shown()
	fields := append([]string{}, p.NeedsRestart...)
	if !slices.Equal(fields, before.NeedsRestart) {
		for _, field := range fields {
			log.Warn("a change of the configuration needs a restart", "field", field)
		}
	}
	for _, s := range p.Start {
		log.Info("source added", "source", s.Name)
	}
	for _, s := range p.Restart {
		log.Info("source restarted with other settings", "source", s.Name)
	}
	for _, l := range before.Leaving {
		if slices.Contains(p.Stop, l.Source) && len(l.WaitsFor) > 0 {
			log.Info("source is removed once others are listed", "source", l.Source, "others", l.WaitsFor)
		}
	}
	if p.Split {
		log.Info("calls are divided otherwise", "splits", len(r.running.Splits))
	}
	if r.looked || !p.unchanged() { // the first read finds the configuration of the start
		log.Info("configuration reloaded", "order", names(&r.running))
		r.events.Add(events.Event{Kind: events.Configuration, Text: "reloaded; the sources are, in merge order: " + strings.Join(names(&r.running), ", ")})
	}
	r.looked = true
	sources := granted(&r.running)
	r.report(func(s *admin.Config) {
		s.State, s.Problems, s.Loaded, s.NeedsRestart, s.Sources, s.Splits = admin.ConfigLoaded, []string{}, time.Now(), fields, sources, Splits(&r.running)
	})
}

// granted lists the rights that a configuration grants its sources.
func granted(c *config.Config) []admin.ConfigSource {
	list := []admin.ConfigSource{}
	for _, s := range c.Sources {
		list = append(list, admin.ConfigSource{Name: s.Name, Kind: s.Kind, Required: s.IsRequired(), Only: s.Only, Owns: s.Owns, LocalAddresses: s.LocalAddresses, Network: s.Network})
	}
	return list
}

// Splits lists the splits of a configuration.
func Splits(c *config.Config) (list []admin.ConfigSplit) {
	for _, s := range c.Splits {
		one := admin.ConfigSplit{Namespace: s.Namespace, Host: s.Host, Locality: s.Locality}
		for _, b := range s.Backends {
			one.Backends = append(one.Backends, admin.SplitTarget(b))
		}
		list = append(list, one)
	}
	return list
}

func (r *reloader) report(change func(*admin.Config)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}

// shown returns the status as operators see it.
func (r *reloader) shown() admin.Config {
	r.mu.Lock()
	status := r.status
	r.mu.Unlock()
	status.File = r.File
	status.Leaving = r.fleet.leaving(r.inView)
	return status
}

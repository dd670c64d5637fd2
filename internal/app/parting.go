package app

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
)

// parting returns the former splits that stay while a source of them leaves: without them,
// its last endpoints would get calls once more. Hosts that are still divided have no need of
// it.
func parting(former, wanted []config.Split, leaves func(source string) bool) []config.Split {
	return slices.DeleteFunc(slices.Clone(former), func(s config.Split) bool {
		divided := slices.ContainsFunc(wanted, func(w config.Split) bool { return w.Host == s.Host && w.Namespace == s.Namespace })
		return divided || !slices.ContainsFunc(s.Backends, func(b config.Backend) bool { return leaves(b.Source) })
	})
}

// divide merges all sources, also those that leave, with these splits and the parting ones.
func (r *reloader) divide(splits []config.Split) {
	merged := r.running // outputs keep their configuration of the start
	merged.Sources, merged.Splits = r.fleet.entries(), slices.Concat(splits, r.parting)
	for _, b := range r.branches {
		b.merger.Arrange(b.orderOf(&merged))
	}
}

// endSplits ends the parting splits of sources that clients no longer see. It returns the
// time until the next call; zero if the next departure of a source calls it.
func (r *reloader) endSplits() (again time.Duration) {
	seen := func(source string) bool {
		left := source != "" && !slices.Contains(r.fleet.names(), source)
		shown := left && slices.ContainsFunc(r.branches, func(b *branch) bool { return b.gate.Snapshot().Primed(source) })
		if shown {
			again = removeAgain
		}
		return shown || source != "" && !left && !slices.ContainsFunc(r.running.Sources, func(s config.Source) bool { return s.Name == source })
	}
	before := len(r.parting)
	r.parting = parting(r.parting, r.running.Splits, seen)
	if len(r.parting) < before {
		r.divide(r.running.Splits)
	}
	return again
}

package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// Records is the part of a store that the application uses, on any backend.
type Records interface {
	supervise.Store
	output.Records
	// Watch yields the records of a filter, then every change; see [store.Replica.Watch].
	Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error]
}

var _ Records = (*store.Memory)(nil)

// openStore makes the store: with the last known good, if a folder is configured.
func (a *App) openStore(ctx context.Context, c *config.Config, metrics *prometheus.Registry) error {
	if c.Store.DataDir == "" {
		a.store = a.machine.Memory(a.machine.Store)
	} else if err := a.openDisk(c); err != nil {
		return fmt.Errorf("store.dataDir: %w", err)
	}
	a.meterStore(metrics)
	if err := errors.Join(a.forget(ctx, c), a.unprime(ctx)); err != nil {
		a.closeDisk()
		return err
	}
	return nil
}

func (a *App) openDisk(c *config.Config) (err error) {
	dir := c.Store.DataDir
	if a.disk, err = store.OpenDisk(store.DiskConfig{
		Dir: dir, Store: a.machine.Store, Log: a.log, Listed: a.listed, Remade: func() { a.remade(c) },
	}); err != nil {
		return err
	}
	a.store = a.disk.Store()
	restored := a.disk.Restored()
	if len(restored.Strange) > 0 {
		a.log.Warn("files of unknown names are in the folder of the last known good, and are not used: delete them", "folder", dir, "files", restored.Strange)
	}
	switch {
	case restored.Damage != nil && restored.At.Revision > 0:
		a.log.Error("the last known good is damaged: an earlier state of it is restored, and every source has to be listed again",
			"folder", dir, "records", restored.Records, "revision", restored.At.Revision, "err", restored.Damage)
	case restored.Damage != nil:
		a.log.Error("the last known good cannot be used", "folder", dir, "err", restored.Damage)
	case restored.Saved.IsZero():
		a.log.Info("nothing was saved yet", "folder", dir)
	default:
		a.log.Info("the last known good is restored", "folder", dir, "records", restored.Records, "revision", restored.At.Revision,
			"saved", restored.Saved.UTC().Format(time.RFC3339), "age", time.Since(restored.Saved).Round(time.Second).String())
	}
	return nil
}

// remade notes that the folder of the last known good was removed or replaced, and is made
// again.
func (a *App) remade(c *config.Config) {
	a.keepSelf(c)
	a.events.Add(events.Event{Kind: events.Disk, Text: fmt.Sprintf(
		"the folder of the last known good, %s, was removed or replaced: it is created again, and everything is saved again; find the process that removed it", c.Store.DataDir)})
}

// unprime marks every source as not listed, if the restored state is incomplete. Which
// sources lack records is then unknown. Before a registry has been listed, nothing is
// served and nothing deleted because of missing records. The records stay, because the next
// listing is compared with them.
func (a *App) unprime(ctx context.Context) error {
	if a.disk == nil || a.disk.Restored().Damage == nil {
		return nil
	}
	var c model.Commit
	for r := range a.store.List(model.Filter{Kind: model.KindSource}) {
		c.Writes = append(c.Writes, model.Write{Record: r, Delete: true})
	}
	_, err := a.store.Commit(ctx, c)
	return err
}

// closeDisk unlocks the folder of an application that does not run.
func (a *App) closeDisk() {
	if a.disk != nil {
		a.disk.Close()
	}
}

// restoredAt returns when the restored records of a source were last known to match its
// registry.
func restoredAt(disk *store.Disk, name string) time.Time {
	if disk == nil {
		return time.Time{}
	}
	restored := disk.Restored()
	if listed, older := restored.Listed[name]; older {
		return listed
	}
	return restored.Saved
}

// listed returns the last listing times of the sources that cannot be read now, for the
// next process.
func (a *App) listed() map[string]time.Time {
	older := map[string]time.Time{}
	for _, s := range a.fleet.supervisors() {
		switch status := s.Status(); {
		case status.State != source.StateStale:
		case status.LastListing.IsZero() && restoredAt(a.disk, status.Name).IsZero():
		case status.LastListing.IsZero():
			older[status.Name] = restoredAt(a.disk, status.Name)
		default:
			older[status.Name] = status.LastListing
		}
	}
	return older
}

// restored names the sources with all records of an earlier process.
func (a *App) restored() []string {
	stored := map[string]bool{}
	if a.disk != nil && a.disk.Restored().Damage == nil {
		for r := range a.store.List(model.Filter{}) {
			stored[r.Source] = true
		}
	}
	return slices.Sorted(maps.Keys(stored))
}

// forget removes the stored records of sources that are no longer configured. It runs
// before anything is read or served. Sources that have never been listed may be successors
// of the removed ones. The removed ones then stay until they are listed. So do sources that
// an earlier process found to leave for others.
func (a *App) forget(ctx context.Context, c *config.Config) error {
	unlisted := a.unlisted(c)
	for _, name := range names(c) { // a source that was leaving is configured again
		if _, err := supervise.StoreDeparture(ctx, a.store, name, model.Departure{}); err != nil {
			return err
		}
	}
	for _, name := range supervise.Leftover(a.store, names(c)) {
		l := leaverOf(name, supervise.StoredDeparture(a.store, name), names(c), unlisted)
		if len(l.waits) > 0 {
			a.leftover = append(a.leftover, l)
			a.log.Info("the source is not configured any more: its records stay until others are listed", "source", name, "others", l.waits)
			continue
		}
		if err := supervise.Remove(ctx, a.store, name); err != nil {
			return err
		}
		a.log.Info("the source is not configured any more: its records were removed", "source", name)
	}
	return nil
}

// unlisted names the sources of a configuration that have never been listed completely.
func (a *App) unlisted(c *config.Config) []string {
	listed := map[string]bool{}
	for r := range a.store.List(model.Filter{Kind: model.KindSource}) {
		listed[r.Source] = true
	}
	return slices.DeleteFunc(names(c), func(name string) bool { return listed[name] })
}

// save starts to save every commit. The returned function stops saving, when there are no
// more commits. It returns why a commit is not saved.
func (a *App) save(ctx context.Context) (end func() error) {
	if a.disk == nil {
		return func() error { return nil }
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.disk.Run(running) }()
	return func() error {
		stop()
		return <-ended
	}
}

func (a *App) meterStore(metrics *prometheus.Registry) {
	gauge := func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "isthmus_store_" + name, Help: help}, value))
	}
	gauge("revision", "Revision of the last commit.", func() float64 { return float64(a.store.Revision()) })
	if a.disk == nil {
		return
	}
	gauge("saved_revision", "Revision up to which everything is on disk.", func() float64 { return float64(a.disk.Saving().Saved.Revision) })
	gauge("save_lag_seconds", "Age of the oldest commit that is not on disk.", func() float64 { return a.disk.Saving().Lag(time.Now()).Seconds() })
	gauge("write_lag_seconds", "Age of the oldest commit that is not handed to the operating system.",
		func() float64 { return a.disk.Saving().WriteLag(time.Now()).Seconds() })
	metrics.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "isthmus_store_save_failures_total", Help: "Failed tries to save."},
		func() float64 { return float64(a.disk.Saving().Failures) }))
}

// saving returns the state of the stored records on disk.
func (a *App) saving() admin.Disk {
	s, now := a.disk.Saving(), time.Now()
	text := fmt.Sprintf("revision %d of %d is on disk, %s behind", s.Saved.Revision, a.store.Revision(), s.Lag(now).Round(time.Millisecond))
	if lag := s.WriteLag(now); lag > 0 {
		text += fmt.Sprintf("; revision %d is handed to the operating system, %s behind", s.Written.Revision, lag.Round(time.Millisecond))
	}
	if s.Err != nil {
		text += fmt.Sprintf("; for %s: %v", now.Sub(s.Since).Round(time.Second), s.Err)
	}
	restored := a.disk.Restored()
	var damage error
	if restored.Damage != nil {
		damage = restored.Damage
		text += "; at the start: " + damage.Error()
	}
	if len(restored.Strange) > 0 {
		text += fmt.Sprintf("; at the start: files of unknown names are not used, delete them: %q", restored.Strange)
	}
	return admin.Disk{
		Text: text, Folder: a.disk.Dir(), Err: s.Err, Next: s.Next, Since: s.Since, Lag: s.Lag(now), Damage: damage, Strange: restored.Strange,
	}
}

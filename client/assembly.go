package client

import (
	"errors"
	"maps"
	"slices"
	"strings"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// assembly gathers the messages of one stream into views. Its records are published once
// they are whole: a commit, or a snapshot with its end.
type assembly struct {
	replica  *Replica
	held     *resourcev1alpha1.Moment // of the published records; nil once they cannot be resumed from
	edit     *immutable.Editor[key, *resourcev1alpha1.Record]
	snapshot bool   // the edit is part of a snapshot
	reset    string // the reason of a reset before the snapshot
	touched  bool   // the edit differs from the published records
	sources  map[string]*resourcev1alpha1.SourceState
	progress bool // a view was published
}

// begin starts from the published records if they are held, and otherwise from none.
func (a *assembly) begin() {
	a.sources = map[string]*resourcev1alpha1.SourceState{}
	if a.held == nil {
		a.startAnew()
		return
	}
	a.edit = a.replica.View().records.Edit()
}

// startAnew drops the edit. A snapshot follows.
func (a *assembly) startAnew() {
	a.edit, a.snapshot, a.held = noRecords().Edit(), true, nil
}

// take applies the events of a message, and publishes them unless the message is partial.
func (a *assembly) take(message *resourcev1alpha1.WatchListResponse) {
	for _, event := range message.GetEvents() {
		a.apply(event)
	}
	if !message.GetPartial() {
		a.publish(message.GetAt())
	}
}

func (a *assembly) apply(event *resourcev1alpha1.Event) {
	switch event := event.GetEvent().(type) {
	case *resourcev1alpha1.Event_Upsert:
		record := event.Upsert.GetRecord()
		a.edit.Set(keyOf(record.GetRef()), record)
		a.touched = true
	case *resourcev1alpha1.Event_Delete:
		a.edit.Delete(keyOf(event.Delete.GetRecord().GetRef()))
		a.touched = true
	case *resourcev1alpha1.Event_Reset_:
		a.startAnew()
		a.reset = event.Reset_.GetReason()
		a.replica.publish(func(s *state) { s.resets, s.reset = s.resets+1, a.reset })
	case *resourcev1alpha1.Event_EndOfSnapshot:
		a.snapshot, a.touched = false, true
		clear(a.sources)
		for _, source := range event.EndOfSnapshot.GetSources() {
			a.sources[source.GetName()] = source
		}
	case *resourcev1alpha1.Event_Source:
		if event.Source.GetRemoved() {
			delete(a.sources, event.Source.GetName())
		} else {
			a.sources[event.Source.GetName()] = event.Source
		}
	}
}

// publish shows readers the sources, and the records if they are whole. At is the moment of
// the records.
func (a *assembly) publish(at *resourcev1alpha1.Moment) {
	sources := make([]*resourcev1alpha1.SourceState, 0, len(a.sources))
	for _, name := range slices.Sorted(maps.Keys(a.sources)) {
		sources = append(sources, a.sources[name])
	}
	whole := a.touched && !a.snapshot
	if whole {
		a.held, a.touched, a.reset, a.progress = at, false, "", true
	}
	a.replica.publish(func(s *state) {
		s.sources, s.why = sources, a.missing()
		if whole {
			s.view = &View{a.edit.Map(), at}
		}
	})
}

// missing returns what a snapshot waits for; nil after it.
func (a *assembly) missing() error {
	if !a.snapshot {
		return nil
	}
	var names []string
	for name, source := range a.sources {
		if only := a.replica.filter.GetSource(); !source.GetPrimed() && (only == "" || only == name) {
			names = append(names, name)
		}
	}
	text := "waiting for the snapshot"
	if len(names) > 0 {
		slices.Sort(names)
		text = "waiting for sources: " + strings.Join(names, ", ")
	}
	if a.reset != "" {
		text += ", after a reset: " + a.reset
	}
	return errors.New(text)
}

package supervise

import (
	"fmt"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// report adds an event about the committed writes of a reading or order, logs removals, and
// returns the numbers. Records about the source itself do not count.
func report(cfg Config, name string, writes []model.Write) source.Changes {
	var added, changed, removed []model.Record
	for _, w := range writes {
		switch r := w.Record; {
		case r.Kind == model.KindSource || r.Kind == model.KindHold:
		case w.Delete:
			removed = append(removed, r)
		case r.UID == (model.UID{}):
			added = append(added, r)
		default:
			changed = append(changed, r)
		}
	}
	numbers := source.Changes{Added: uint64(len(added)), Changed: uint64(len(changed)), Removed: uint64(len(removed))}
	var parts, names []string
	for _, group := range []struct {
		verb string
		list []model.Record
	}{{"removed", removed}, {"added", added}, {"changed", changed}} {
		if len(group.list) == 0 {
			continue
		}
		parts = append(parts, group.verb+" "+countKinds(group.list))
		for _, r := range group.list[:min(len(group.list), events.MostNames-min(len(names), events.MostNames))] {
			names = append(names, nameOf(r))
		}
	}
	if len(parts) == 0 {
		return numbers
	}
	cfg.Events.Add(events.Event{Kind: events.Records, Source: name, Text: strings.Join(parts, ", "), Names: names})
	if len(removed) > 0 {
		cfg.Log.Info("records removed", "source", name, "count", countKinds(removed), "first", names[0])
	}
	return numbers
}

// nameOf names a record. A service is also known by its hosts, which operators look for.
func nameOf(r model.Record) string {
	if s, ok := r.Spec.(model.Service); ok && s.Hosts.Len() > 0 {
		return r.String() + " (" + strings.Join(s.Hosts.Slice(), ", ") + ")"
	}
	return r.String()
}

// countKinds counts records by kind: "2 Services and 3 Endpoints".
func countKinds(list []model.Record) string {
	counts := map[model.Kind]int{}
	var kinds []model.Kind
	for _, r := range list {
		if counts[r.Kind]++; counts[r.Kind] == 1 {
			kinds = append(kinds, r.Kind)
		}
	}
	var parts []string
	for _, kind := range kinds {
		text := fmt.Sprintf("%d %s", counts[kind], kind)
		if counts[kind] > 1 {
			text += "s"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

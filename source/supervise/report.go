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
	var added, changed, removed []model.Ref
	for _, w := range writes {
		switch r := w.Record; {
		case r.Kind == model.KindSource || r.Kind == model.KindHold:
		case w.Delete:
			removed = append(removed, r.Ref)
		case r.UID == (model.UID{}):
			added = append(added, r.Ref)
		default:
			changed = append(changed, r.Ref)
		}
	}
	numbers := source.Changes{Added: uint64(len(added)), Changed: uint64(len(changed)), Removed: uint64(len(removed))}
	var parts, names []string
	for _, group := range []struct {
		verb string
		refs []model.Ref
	}{{"removed", removed}, {"added", added}, {"changed", changed}} {
		if len(group.refs) == 0 {
			continue
		}
		parts = append(parts, group.verb+" "+countKinds(group.refs))
		for _, ref := range group.refs[:min(len(group.refs), events.MostNames-min(len(names), events.MostNames))] {
			names = append(names, ref.String())
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

// countKinds counts references by kind: "2 Services and 3 Endpoints".
func countKinds(refs []model.Ref) string {
	counts := map[model.Kind]int{}
	var kinds []model.Kind
	for _, ref := range refs {
		if counts[ref.Kind]++; counts[ref.Kind] == 1 {
			kinds = append(kinds, ref.Kind)
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

package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// life returns a version of a life of the service web.
func life(n byte, revision, generation uint64) model.Record {
	r := saying(web, int(revision))
	r.UID, r.Revision, r.Generation = model.UID{n}, revision, generation
	return r
}

func upsert(r model.Record) model.Event { return model.Upsert{Record: r} }

func got(events ...model.Event) model.Batch {
	return model.Batch{Events: events, Committed: time.Unix(1, 0)}
}

func shown(events ...model.Event) model.Batch { return model.Batch{Events: events} }

// Every way to break a rule on one stream is seen; a good stream is not rejected.
func TestTheViewSeesBrokenRules(t *testing.T) {
	t.Parallel()
	end := func(revision uint64) model.Event { return model.EndOfSnapshot{Revision: revision, Epoch: 1} }
	gone := func(r model.Record, revision uint64) model.Event { return model.Delete{Record: r, Revision: revision} }
	primed := shown(upsert(life(1, 3, 1)), end(5))
	reset := shown(model.Reset{})
	deleted := got(gone(life(1, 3, 1), 6))
	for name, c := range map[string]struct {
		stream []model.Batch
		want   string // part of the error; empty if there is to be none
	}{
		"a good stream": {[]model.Batch{
			primed, got(upsert(life(1, 6, 2))), got(gone(life(1, 6, 2), 7)), got(upsert(life(2, 8, 1))),
			reset, shown(upsert(life(2, 8, 1))), shown(end(9)), got(upsert(life(2, 10, 2))),
		}, ""},
		"an empty batch":            {[]model.Batch{shown()}, "without events"},
		"a record twice":            {[]model.Batch{shown(upsert(life(1, 3, 1)), upsert(life(1, 4, 2)), end(5))}, "rule 1"},
		"a record of the future":    {[]model.Batch{shown(upsert(life(1, 6, 1)), end(5))}, "rule 1"},
		"a record never stored":     {[]model.Batch{shown(upsert(life(1, 0, 1)), end(5))}, "rule 1"},
		"an end before the last":    {[]model.Batch{shown(end(5), upsert(life(1, 3, 1)))}, "rule 2"},
		"a second end":              {[]model.Batch{primed, got(end(6))}, "rule 2"},
		"a delete in a snapshot":    {[]model.Batch{shown(gone(life(1, 3, 1), 4))}, "rule 2"},
		"a snapshot with times":     {[]model.Batch{got(end(5))}, "times"},
		"a revision twice":          {[]model.Batch{primed, got(upsert(life(1, 6, 2)), upsert(life(1, 6, 3)))}, "rule 3"},
		"an older record":           {[]model.Batch{primed, reset, shown(upsert(life(1, 2, 1)), end(5))}, "rule 3"},
		"a delta of the snapshot":   {[]model.Batch{primed, got(upsert(life(1, 5, 2)))}, "rule 4"},
		"an older delta":            {[]model.Batch{primed, got(upsert(life(1, 7, 2))), got(upsert(life(1, 6, 3)))}, "rule 4"},
		"a commit of two revisions": {[]model.Batch{primed, got(upsert(life(1, 6, 2)), gone(life(1, 6, 2), 7))}, "revisions 6 and 7"},
		"a commit without its time": {[]model.Batch{primed, shown(upsert(life(1, 6, 2)))}, "without its time"},
		"a delete of an older one":  {[]model.Batch{primed, got(upsert(life(1, 6, 2))), got(gone(life(1, 3, 1), 7))}, "rule 5"},
		"a delete of nothing":       {[]model.Batch{shown(end(5)), got(gone(life(1, 3, 1), 6))}, "rule 5"},
		"the old life again":        {[]model.Batch{primed, deleted, got(upsert(life(1, 7, 1)))}, "rule 6"},
		"the old life in a reset":   {[]model.Batch{primed, deleted, reset, shown(upsert(life(1, 7, 1)), end(7))}, "rule 6"},
		"a life without a uid":      {[]model.Batch{primed, deleted, got(upsert(life(0, 7, 1)))}, "rule 6"},
		"another life, no delete":   {[]model.Batch{primed, got(upsert(life(2, 6, 1)))}, "follows"},
		"a version left out":        {[]model.Batch{primed, got(upsert(life(1, 6, 3)))}, "follows"},
		"a creation left out":       {[]model.Batch{primed, deleted, got(upsert(life(2, 7, 2)))}, "begins"},
		"a reset in company":        {[]model.Batch{primed, shown(model.Reset{}, end(6))}, "not alone"},
		"a reset in a snapshot":     {[]model.Batch{reset}, "inside"},
		"a snapshot of the past":    {[]model.Batch{primed, reset, shown(end(4))}, "after 5"},
		"a snapshot of no epoch":    {[]model.Batch{shown(model.EndOfSnapshot{Revision: 4})}, "without an epoch"},
		"a restored past": {[]model.Batch{
			primed, deleted, reset, shown(upsert(life(1, 2, 1)), model.EndOfSnapshot{Revision: 4, Epoch: 2}), got(upsert(life(1, 5, 2))),
		}, ""},
	} {
		v := newView()
		var err error
		for _, b := range c.stream {
			if err = v.apply(b); err != nil {
				break
			}
		}
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
}

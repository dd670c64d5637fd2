package catalog_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/merger"
	"github.com/isthmus-mesh/isthmus/model"
)

// script is a watch that says what a test wrote down, and then fails or ends.
func script(err error, batches ...model.Batch) iter.Seq2[model.Batch, error] {
	return func(yield func(model.Batch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(model.Batch{}, err)
		}
	}
}

// batch makes a batch of events and lists of events.
func batch(parts ...any) model.Batch {
	var b model.Batch
	for _, part := range parts {
		switch p := part.(type) {
		case []model.Event:
			b.Events = append(b.Events, p...)
		case model.Event:
			b.Events = append(b.Events, p)
		default:
			panic(fmt.Sprintf("no event: %T", part))
		}
	}
	return b
}

func end(revision uint64) model.Event { return model.EndOfSnapshot{Revision: revision, Epoch: 1} }

// reset comes alone.
func reset() model.Batch { return batch(model.Reset{Reason: "too slow"}) }

// published is what Run delivered to its reader.
type published struct {
	snapshots []*catalog.Snapshot
	changes   []catalog.Change
}

// run runs a script that must end with err.
func run(t interface{ Fatalf(string, ...any) }, err error, batches ...model.Batch) published {
	var p published
	got := merger.Run(script(err, batches...), catalog.Order{Sources: order}, func(s *catalog.Snapshot, c catalog.Change) {
		p.snapshots, p.changes = append(p.snapshots, s), append(p.changes, c)
	})
	if !errors.Is(got, err) {
		t.Fatalf("the run ends with %v, want %v", got, err)
	}
	return p
}

// names returns the names in each change.
func (p published) names() [][]string {
	list := [][]string{}
	for _, c := range p.changes {
		list = append(list, names(c))
	}
	return list
}

var (
	shopRecord = service("a", "shop", "shop")
	one        = endpoint("a", "shop/1", "10.0.0.1", 1)
	two        = endpoint("a", "shop/2", "10.0.0.2", 1)
	barRecord  = service("b", "bar", "bar")
	barOne     = endpoint("b", "bar/1", "10.0.1.1", 1)
)

func TestSnapshotIsOneChange(t *testing.T) {
	t.Parallel()
	p := run(t, nil,
		batch(upserts(one, shopRecord)), batch(upserts(mark("a"), barRecord)), batch(upserts(two, mark("b")), end(7)))
	want := [][]string{{"ns/bar", "ns/shop", "ns/shop 80 10.0.0.1:80", "ns/shop 80 10.0.0.2:80"}}
	if diff := cmp.Diff(want, p.names()); diff != "" {
		t.Fatalf("published (-want +got):\n%s", diff)
	}
	s := p.snapshots[0]
	if s.Revision != 7 || !s.Primed("a") || !s.Primed("b") || !p.changes[0].Primed {
		t.Errorf("revision %d, a is primed: %t, b: %t, the change says so: %t", s.Revision, s.Primed("a"), s.Primed("b"), p.changes[0].Primed)
	}
}

func TestEmptySnapshotIsPublished(t *testing.T) {
	t.Parallel()
	p := run(t, nil, batch(end(3)))
	if len(p.snapshots) != 1 || p.snapshots[0].Revision != 3 || !p.changes[0].Empty() {
		t.Errorf("published %d snapshots, changes %+v", len(p.snapshots), p.changes)
	}
}

func TestHalfASnapshotIsNotPublished(t *testing.T) {
	t.Parallel()
	lost := errors.New("the store is away")
	if p := run(t, lost, batch(upserts(shopRecord)), batch(upserts(one))); len(p.snapshots) > 0 {
		t.Errorf("published %q", p.names())
	}
	p := run(t, lost, batch(upserts(shopRecord), end(1)), reset(), batch(upserts(barRecord)))
	if diff := cmp.Diff([][]string{{"ns/shop"}}, p.names()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestEveryCommitIsPublished(t *testing.T) {
	t.Parallel()
	commit := batch(upserts(one))
	commit.Events[0] = model.Upsert{Record: at(one, 8)}
	commit.Observed, commit.Committed = time.Unix(1, 0), time.Unix(2, 0)
	p := run(t, nil, batch(upserts(shopRecord), end(7)), commit, batch(model.Delete{Record: at(one, 8), Revision: 9}))
	want := [][]string{{"ns/shop"}, {"ns/shop", "ns/shop 80 10.0.0.1:80"}, {"ns/shop", "ns/shop 80 10.0.0.1:80"}}
	if diff := cmp.Diff(want, p.names()); diff != "" {
		t.Fatalf("published (-want +got):\n%s", diff)
	}
	if c := p.changes[1]; !c.Observed.Equal(commit.Observed) || !c.Committed.Equal(commit.Committed) {
		t.Errorf("observed %s, committed %s", c.Observed, c.Committed)
	}
	for i, want := range []uint64{7, 8, 9} {
		if s, _ := p.snapshots[i].Service(shop); p.snapshots[i].Revision != want || s.Revision != want {
			t.Errorf("publication %d is of revision %d and its service of %d, want %d", i, p.snapshots[i].Revision, s.Revision, want)
		}
	}
}

func at(r model.Record, revision uint64) model.Record {
	r.Revision = revision
	return r
}

// After a reset readers are given the difference, however much was read again.
func TestResetPublishesTheDifference(t *testing.T) {
	t.Parallel()
	first := batch(upserts(shopRecord, one, two, barRecord, barOne, mark("a")), end(7))
	for name, test := range map[string]struct {
		again []model.Event
		want  []string
	}{
		"nothing":            {upserts(shopRecord, one, two, barRecord, barOne, mark("a")), []string{}},
		"an endpoint fewer":  {upserts(shopRecord, one, barRecord, barOne, mark("a")), []string{"ns/shop", "ns/shop 80 10.0.0.2:80"}},
		"an endpoint more":   {upserts(shopRecord, one, two, endpoint("a", "shop/3", "10.0.0.3", 1), barRecord, barOne, mark("a")), []string{"ns/shop", "ns/shop 80 10.0.0.3:80"}},
		"an endpoint weighs": {upserts(shopRecord, endpoint("a", "shop/1", "10.0.0.1", 2), two, barRecord, barOne, mark("a")), []string{"ns/shop", "ns/shop 80 10.0.0.1:80"}},
		"a service fewer":    {upserts(shopRecord, one, two, mark("a")), []string{"ns/bar", "ns/bar 80 10.0.1.1:80"}},
		"a service more":     {upserts(shopRecord, one, two, barRecord, barOne, service("c", "new", "new"), mark("a")), []string{"ns/new"}},
		"a word that does not count": {
			upserts(shopRecord, one, two, barRecord, barOne, endpoint("a", "shop/9", "10.0.0.1", 9), mark("a")), []string{"ns/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, nil, first, reset(), batch(test.again[:2]), batch(test.again[2:], end(12)))
			if len(p.changes) != 2 {
				t.Fatalf("published %d changes", len(p.changes))
			}
			if diff := cmp.Diff(test.want, names(p.changes[1])); diff != "" {
				t.Errorf("the difference (-want +got):\n%s", diff)
			}
			if p.changes[1].Primed {
				t.Error("primed is set, and the same source is primed")
			}
			if p.snapshots[1].Revision != 12 {
				t.Errorf("the snapshot is of revision %d", p.snapshots[1].Revision)
			}
		})
	}
}

func TestResetInsideASnapshot(t *testing.T) {
	t.Parallel()
	p := run(t, nil, batch(upserts(shopRecord, one)), reset(), batch(upserts(barRecord), end(2)))
	if diff := cmp.Diff([][]string{{"ns/bar"}}, p.names()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// Commits go on from the snapshot that followed the reset.
func TestCommitsFollowAReset(t *testing.T) {
	t.Parallel()
	p := run(t, nil, batch(upserts(shopRecord, one), end(1)), reset(), batch(upserts(shopRecord, one), end(2)),
		batch(upserts(at(two, 3))), batch(deletes(one)))
	want := [][]string{{"ns/shop", "ns/shop 80 10.0.0.1:80"}, {}, {"ns/shop", "ns/shop 80 10.0.0.2:80"}, {"ns/shop", "ns/shop 80 10.0.0.1:80"}}
	if diff := cmp.Diff(want, p.names()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// Whatever the watch tells and however often it starts anew: every published
// change is exact, and the last snapshot holds what the store holds.
func TestRunIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, revision := state{}, uint64(0)
		var batches []model.Batch
		for i, commit := range drawHistory(t) {
			now.take(commit)
			revision++
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "reset") > 0 {
				batches = append(batches, batch(commit))
				continue
			}
			if i > 0 {
				batches = append(batches, reset())
			}
			for part := range slices.Chunk(now.events(), 7) {
				batches = append(batches, batch(part))
			}
			batches = append(batches, batch(end(revision)))
		}
		p, old := run(t, nil, batches...), catalog.Empty()
		for i, s := range p.snapshots {
			mustBeExact(t, old, s, p.changes[i])
			old = s
		}
		mustEqual(t, "the last snapshot", seen(t, old), seen(t, build(order, now)))
	})
}

// A service has the time of the commit that last changed it. Services of a snapshot of the
// store have none, and a commit about another service gives them none.
func TestServicesHaveTheTimeOfTheirLastChange(t *testing.T) {
	t.Parallel()
	commit := func(second int64, record model.Record) model.Batch {
		b := batch(upserts(at(record, uint64(second))))
		b.Committed = time.Unix(second, 0)
		return b
	}
	p := run(t, nil, batch(upserts(shopRecord, barRecord), end(7)), commit(8, one), commit(9, barOne))
	changed := func(s *catalog.Snapshot, host string) (at time.Time) {
		for service := range s.ByHost(host) {
			at = service.Changed
		}
		return at
	}
	for i, want := range []map[string]time.Time{
		{"shop": {}, "bar": {}},
		{"shop": time.Unix(8, 0), "bar": {}},
		{"shop": time.Unix(8, 0), "bar": time.Unix(9, 0)},
	} {
		for host, when := range want {
			if got := changed(p.snapshots[i], host); !got.Equal(when) {
				t.Errorf("snapshot %d: %s changed at %s, want %s", i, host, got, when)
			}
		}
	}
	// After a reset the store's snapshot says what there is, and not since when.
	again := run(t, nil, batch(upserts(shopRecord), end(7)), commit(8, one), reset(), batch(upserts(shopRecord, at(one, 8), barRecord), end(9)))
	last := again.snapshots[len(again.snapshots)-1]
	if at := changed(last, "bar"); !at.IsZero() {
		t.Errorf("a service that a snapshot brought changed at %s", at)
	}
}

// An endpoint has the time of the commit with which a record of it came, changed or went. A
// change of its neighbour or of the service gives it no other time.
func TestEndpointsHaveTheTimeOfTheirLastChange(t *testing.T) {
	t.Parallel()
	first := func(weight uint32) model.Record { return endpoint("a", "shop/1", "10.0.0.1", weight) }
	second := func(weight uint32) model.Record { return endpoint("a", "shop/2", "10.0.0.2", weight) }
	stale := first(3)
	stale.Status = model.Status{Stale: "a port is missing", Since: time.Unix(5, 0)}
	elsewhere := func(source string) model.Record {
		moved := service(source, "shop", "shop")
		moved.Spec = model.Service{Hosts: model.ListOf("shop"), Ports: model.ListOf(model.Port{Number: 81, Name: "http", Protocol: "HTTP"}), Resolution: model.ResolutionStatic}
		return moved
	}
	batches := []model.Batch{batch(upserts(shopRecord, service("b", "shop", "shop"), first(1), second(1)), end(1))}
	steps := []struct {
		name          string
		events        []model.Event
		first, second int64 // the expected times in seconds; zero if unknown
	}{
		{name: "a snapshot of the store"},
		{name: "a weight changes", events: upserts(first(3)), first: 1},
		{name: "the other weight changes", events: upserts(second(3)), first: 1, second: 2},
		{name: "a status changes beside a weight", events: upserts(stale, second(4)), first: 1, second: 3},
		{name: "the service has another port", events: upserts(elsewhere("a"), elsewhere("b")), first: 1, second: 3},
		{name: "a record of another source comes", events: upserts(endpoint("b", "shop/1", "10.0.0.1", 7)), first: 5, second: 3},
		{name: "the record that counts goes", events: deletes(first(3)), first: 6, second: 3},
		{name: "it comes back", events: upserts(first(3)), first: 7, second: 3},
		{name: "the other one goes", events: deletes(endpoint("b", "shop/1", "10.0.0.1", 7)), first: 8, second: 3},
	}
	for i, step := range steps[1:] {
		commit := batch(step.events)
		commit.Committed = time.Unix(int64(i+1), 0)
		batches = append(batches, commit)
	}
	p := run(t, nil, batches...)
	changed := func(s *catalog.Snapshot, address string) (at time.Time) {
		service, _ := s.Service(shop)
		for _, port := range service.Ports {
			for e := range service.Endpoints(port.Number).Claims() {
				if e.Address == address && e.Changed().After(at) {
					at = e.Changed()
				}
			}
		}
		return at
	}
	unix := func(seconds int64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	for i, step := range steps {
		for address, want := range map[string]time.Time{"10.0.0.1": unix(step.first), "10.0.0.2": unix(step.second)} {
			if got := changed(p.snapshots[i], address); !got.Equal(want) {
				t.Errorf("%s: %s changed at %s, want %s", step.name, address, got, want)
			}
		}
	}
}

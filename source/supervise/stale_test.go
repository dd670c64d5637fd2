package supervise_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// staleSince returns since when the stored mark has the source stale.
func (b *bridge) staleSince() time.Time {
	b.t.Helper()
	synctest.Wait()
	for rec := range b.store.List(model.Filter{Kind: model.KindSource}) {
		mark, _ := rec.Spec.(model.SourceMark)
		return mark.StaleSince
	}
	return time.Time{}
}

// A source that cannot be read for the time of its hold is marked: from then on its endpoints have the health that
// other sources say. A listing ends that in its own commit.
func TestSourceThatIsStaleForLongIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events.New()
		b := connectWith(t, newLedger(), supervise.Config{Hold: hold.Config{Share: 0.5, Min: 10, For: 5 * time.Minute}, Events: log})
		b.list(service("a", "f", "10.0.0.1"))
		time.Sleep(time.Hour)
		b.fail("no route")
		began := b.Status().Since
		for since := range 4 {
			time.Sleep(time.Minute)
			b.fail("still no route") // another failure begins no other outage
			if at := b.staleSince(); !at.IsZero() {
				t.Fatalf("marked after %d min: %s", since+1, at)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if at := b.staleSince(); !at.Equal(began) {
			t.Errorf("the mark says %s; it is stale since %s", at, began)
		}
		list, _, _ := log.After(0)
		mentions(t, list[len(list)-1].Text, "stale for 5m0s", "health")
		b.list(service("a", "f", "10.0.0.1"))
		if at := b.staleSince(); !at.IsZero() {
			t.Errorf("it is listed, and the mark still says %s", at)
		}
		b.inState(source.StateLive)
	})
}

// What an earlier process has marked stays until the source is listed.
func TestMarkOfAStaleSourceSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		b := connect(t, l)
		b.list(service("a", "f", "10.0.0.1"))
		b.fail("no route")
		began := b.Status().Since
		time.Sleep(time.Hour)
		b = connect(t, l)
		for range 3 {
			if at := b.staleSince(); !at.Equal(began) {
				t.Fatalf("the mark says %s; it was stale since %s", at, began)
			}
			time.Sleep(time.Hour)
		}
		b.list(service("a", "f", "10.0.0.1"))
		if at := b.staleSince(); !at.IsZero() {
			t.Errorf("it is listed, and the mark still says %s", at)
		}
	})
}

// A store that is full when the time has come is tried again. A change that it takes afterwards ends the outage
// without a listing.
func TestMarkOfAStaleSourceIsTriedAgain(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "10.0.0.1"))
		b.store.rejectNext(100)
		change := model.Change{Upserts: []model.Object{service("b", "f", "10.0.0.2")}}
		_ = b.do(func(ctx context.Context, sink source.Sink) error { return sink.Change(ctx, change) })
		b.inState(source.StateStale)
		time.Sleep(2 * time.Minute)
		if left := b.store.rejectNext(0); left == 100-4 {
			t.Error("the mark is not tried")
		}
		time.Sleep(time.Minute)
		if b.staleSince().IsZero() {
			t.Error("it is not marked")
		}
		b.change(change)
		b.inState(source.StateLive)
		if at := b.staleSince(); !at.IsZero() {
			t.Errorf("it is live, and the mark still says %s", at)
		}
	})
}

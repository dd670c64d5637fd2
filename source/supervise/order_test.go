package supervise_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// hold has an operator hold the source.
func (b *bridge) hold(d time.Duration) {
	b.t.Helper()
	until, err := b.HoldFor(b.t.Context(), d)
	if err != nil {
		b.t.Fatal(err)
	}
	if want := time.Now().Add(d); until.After(want) || until.Before(want.Add(-time.Second)) {
		b.t.Errorf("it ends at %s, want %s", until, want)
	}
}

// state checks the state and a part of its reason.
func (b *bridge) state(want source.State, reason string) {
	b.t.Helper()
	if st := b.Status(); st.State != want || !strings.Contains(st.Reason, reason) {
		b.t.Errorf("it is %s: %s; want %s: %s", st.State, st.Reason, want, reason)
	}
}

const byOperator = "held by an operator until "

func TestAnOperatorsHoldRemovesNothingThatListingsLack(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 4, 5)...)
		b.hold(30 * time.Minute)
		b.state(source.StateHeld, byOperator)
		b.list(fleet(3, 6, 5)...) // without three services, and with two more
		b.standing(30, 0)
		time.Sleep(29 * time.Minute)
		b.list()
		b.standing(30, 0)
		b.state(source.StateHeld, byOperator)
		if asked := b.registry.asked(time.Now()); len(asked) > 0 {
			t.Errorf("the registry is asked to list during the hold, %d times", len(asked))
		}
		// It ends by itself, the registry is asked to list, and a drop is judged as any other.
		b.registry.answer(model.Listing{Objects: fleet(3, 6, 5)})
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		b.standing(30, 18)
		b.state(source.StateHeld, "15 of 30 endpoints disappeared")
		if st := b.Status(); !st.HeldUntil.IsZero() {
			t.Errorf("the hold still ends at %s", st.HeldUntil)
		}
	})
}

// A loss that is not suspicious is removed when the hold ends, and not before.
func TestAfterAnOperatorsHoldSmallLossesGo(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.hold(time.Minute)
		b.list(fleet(1, 5, 5)...)
		b.standing(25, 0)
		b.registry.answer(model.Listing{Objects: fleet(1, 5, 5)})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		b.standing(20, 0)
		b.state(source.StateLive, "")
	})
}

func TestReleaseEndsAnOperatorsHold(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.hold(24 * time.Hour)
		b.list(fleet(1, 5, 5)...)
		b.registry.answer(model.Listing{Objects: fleet(1, 5, 5)})
		if n, err := b.Release(b.t.Context()); n != 0 || err != nil {
			t.Errorf("%d are released: %v", n, err)
		}
		b.state(source.StateLive, "")
		time.Sleep(time.Second) // it is asked at once
		synctest.Wait()
		b.standing(20, 0)
	})
}

// Deletions that the registry reports one by one pass.
func TestAnOperatorsHoldPassesReportedDeletions(t *testing.T) {
	supervised(t, func(b *bridge) {
		four := fleet(0, 4, 5)
		b.list(four...)
		b.hold(time.Hour)
		if err := b.do(func(ctx context.Context, sink source.Sink) error {
			return sink.Change(ctx, model.Change{Deletes: []model.Ref{four[0].Record.Ref}})
		}); err != nil {
			t.Fatal(err)
		}
		b.standing(15, 0)
	})
}

// Records that a drop holds stay for as long as the operator's hold, whatever their clock.
func TestAnOperatorsHoldOutlastsThatOfADrop(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 4, 5)...)
		b.list(fleet(2, 4, 5)...)
		b.standing(20, 12)
		b.registry.answer(model.Listing{Objects: fleet(2, 4, 5)})
		b.hold(time.Hour)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		b.standing(20, 12)
		b.state(source.StateHeld, byOperator)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		b.standing(10, 0)
		b.state(source.StateLive, "")
	})
}

func TestAnOperatorsHoldSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		first := connect(t, l)
		first.list(fleet(0, 4, 5)...)
		first.hold(time.Hour)
		log := events.New()
		b := connectWith(t, l, supervise.Config{Events: log})
		b.list() // everything is gone, it says
		b.standing(20, 0)
		b.state(source.StateHeld, byOperator)
		b.registry.answer(model.Listing{Objects: fleet(0, 4, 5)})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b.standing(20, 0)
		b.state(source.StateLive, "")
		list, _, _ := log.After(0)
		if last := list[len(list)-1]; last.Kind != events.Hold || last.Text != "the operator's hold has ended" {
			t.Errorf("the last event is %+v", last)
		}
		// A third process finds no hold, although its end is still stored.
		if st := connect(t, l).Status(); !st.HeldUntil.IsZero() {
			t.Errorf("it is held until %s", st.HeldUntil)
		}
	})
}

func TestAnOperatorsHoldIsBounded(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 1, 1)...)
		until, err := b.HoldFor(b.t.Context(), 100*time.Hour)
		if err != nil || until.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("it ends at %s: %v", until, err)
		}
	})
}

// What another system has of the source is not judged during the hold, so nothing is deleted
// there. The listing that follows judges it.
func TestAnOperatorsHoldJudgesNoBaseline(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 2, 5)...)
		b.hold(time.Hour)
		b.lacks(3) // too few to be held
		b.list(fleet(0, 2, 5)...)
		if j := b.decided(); j.Baseline != "" {
			t.Errorf("it is judged: %+v", j)
		}
		b.registry.answer(model.Listing{Objects: fleet(0, 2, 5)})
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if j := b.decided(); j.Baseline == "" {
			t.Error("it is not judged after the hold")
		}
	})
}

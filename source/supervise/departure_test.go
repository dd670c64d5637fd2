package supervise_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// The mark of a source says how far the source has come that leaves, until somebody says
// otherwise: what is decided about baselines is added, and a listing takes nothing away.
func TestADepartureStaysInTheMark(t *testing.T) {
	supervised(t, func(b *bridge) {
		left := model.Departure{Successors: model.ListOf("next"), Since: time.Unix(1e9, 0), Share: 0.5, Min: 10, For: time.Hour}
		say := func(d model.Departure, want bool) {
			t.Helper()
			if stored, err := supervise.StoreDeparture(t.Context(), b.store, "reg", d); err != nil || stored != want {
				t.Fatalf("it is stored: %t, error %v", stored, err)
			}
		}
		say(left, false) // it was never listed
		say(model.Departure{}, true)
		b.list(fleet(0, 2, 5)...)
		say(left, true)
		say(left, true)
		b.lacks(95)
		b.list(fleet(0, 2, 5)...)
		b.keeps(95, 1)
		if now := supervise.StoredDeparture(b.store, "reg"); !now.Equal(left) {
			t.Errorf("the mark says %+v", now)
		}
		say(model.Departure{}, true)
		if now := supervise.StoredDeparture(b.store, "reg"); !now.Equal(model.Departure{}) {
			t.Errorf("the mark says %+v", now)
		}
		b.keeps(95, 1)
	})
}

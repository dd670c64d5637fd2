package supervise_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Every record that is written counts once, whether a reading or an operator's order writes
// it. A held record counts when it goes.
func TestWrittenRecordsAreCounted(t *testing.T) {
	supervised(t, func(b *bridge) {
		counted := func(when string, endpointsHeld int, want source.Changes) {
			t.Helper()
			st := b.Status()
			if diff := cmp.Diff(want, st.Changes); diff != "" || st.HeldEndpoints != endpointsHeld {
				t.Errorf("%s: %d endpoints are held, want %d; changes (-want +got):\n%s", when, st.HeldEndpoints, endpointsHeld, diff)
			}
		}
		four := fleet(0, 4, 5)
		b.list(four...)
		counted("first listing", 0, source.Changes{Added: 24})
		b.list(four...)
		counted("the same again", 0, source.Changes{Added: 24})
		two := fleet(2, 4, 5)
		two[0].Owned[0].Spec = model.Endpoint{Address: "other"}
		b.list(two...)
		counted("a drop and a change", 10, source.Changes{Added: 24, Changed: 1})
		if _, err := b.Release(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		counted("released", 0, source.Changes{Added: 24, Changed: 1, Removed: 12})
	})
}

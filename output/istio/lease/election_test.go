package lease

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

// Each change of the leader is one event, although every elector reports the leader anew.
func TestChangesOfTheLeaderAreEvents(t *testing.T) {
	t.Parallel()
	log := events.New()
	l, err := New("mesh", "bridge", &rest.Config{Host: "https://192.0.2.1"}, log, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	own := l.lock.Identity()
	for _, who := range []string{"other", "other", "", own, own, "other"} {
		l.changed(who)
	}
	var got []string
	list, _, _ := log.After(0)
	for _, e := range list {
		if e.Kind != events.Leader || e.Output != "istio" {
			t.Errorf("got %+v", e)
		}
		got = append(got, e.Text)
	}
	want := []string{"another replica writes: other", "no replica writes", "this replica writes: " + own, "another replica writes: other"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

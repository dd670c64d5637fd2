package events_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

// Of a storm the first events are kept, and one event counts the others. Another output,
// another verb and the next second are no part of it.
func TestAStormOfClientsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events.New()
		xds, mcp := log.Of("xds"), log.Of("mcp")
		for i := range 344 {
			xds.Add(events.Connected, fmt.Sprint(i), "by xds-delta")
		}
		xds.Add(events.NACKed, "0", "bad")
		mcp.Add(events.Connected, "istiod", "by mcp")
		time.Sleep(time.Second)
		xds.Add(events.Connected, "later", "by xds-delta")
		time.Sleep(time.Second)
		list, last, lost := log.After(0)
		if lost != 0 || last != uint64(len(list)) || len(list) != 32+4 {
			t.Fatalf("%d events, the last is %d, %d are lost", len(list), last, lost)
		}
		var got []string
		for _, e := range list[31:] {
			got = append(got, fmt.Sprintf("%s %s %s", e.Output, e.Client, e.Text))
		}
		want := []string{
			"xds 31 connected by xds-delta", "xds 0 NACKed bad", "mcp istiod connected by mcp",
			"xds  … and 312 more clients connected within a second", "xds later connected by xds-delta",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A storm that has ended is counted by the next read, and once.
func TestAReadCountsAnEndedStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events.New()
		for range 33 {
			log.Of("xds").Add(events.Left, "a", "after 1s")
		}
		texts := func() (list []string) {
			all, _, _ := log.After(32)
			for _, e := range all {
				list = append(list, e.Text)
			}
			return list
		}
		if got := texts(); len(got) > 0 {
			t.Errorf("within the second: %q", got)
		}
		time.Sleep(time.Second)
		for range 2 {
			if got := texts(); !slices.Equal(got, []string{"… and 1 more clients left within a second"}) {
				t.Errorf("got %q", got)
			}
		}
	})
}

// Acts of clients drop no other event, and no more of them are kept than of records.
func TestClientsDropNoOtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events.New()
		log.Add(events.Event{Kind: events.Configuration, Text: "rejected"})
		for range 300 {
			for range 32 {
				log.Of("xds").Add(events.NACKed, "a", "bad")
			}
			time.Sleep(time.Second)
		}
		if list, _, _ := log.After(0); len(list) != 4097 || list[0].Text != "rejected" {
			t.Errorf("%d events are kept, the first is %+v", len(list), list[0])
		}
	})
}

// The cost of an event is beside the cost of a connection: the connection takes a TLS
// handshake or a stream, and its first resources.
func BenchmarkClientEvent(b *testing.B) {
	clients := events.New().Of("xds")
	for b.Loop() {
		clients.Add(events.Connected, "client", "by xds-delta")
	}
}

package istio

import (
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// What an earlier process saved may be older than what is in the API server,
// which was written until the very end, or by another replica since. Until its
// source has been listed, nothing is taken away on the strength of it.
func TestWhatWasRestoredTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Instance("sc", "a.example", "10.0.0.2"),
		shop.Service("sc", "young.example"), shop.Instance("sc", "young.example", "10.0.0.3"),
		shop.Service("files", "f.example"), shop.Instance("files", "f.example", "10.0.0.4"))
	r.listed("sc", "files")
	first := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	wants(t, api, "young.example", "10.0.0.3")
	settled(t, first)
	first.stop()

	old := newRegistry("sc", "files") // saved before the last changes
	old.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"),
		shop.Service("sc", "lost.example"), shop.Instance("sc", "lost.example", "10.0.0.9"),
		shop.Service("files", "f.example"), shop.Instance("files", "f.example", "10.0.0.5"))
	old.listed("sc", "files")
	second := fresh(t, api, old, long, func(_ *Config, o *Options) { o.Restored = []string{"sc"} })
	second.Listed("files")
	wants(t, api, "lost.example", "10.0.0.9") // what is missing is made
	wants(t, api, "f.example", "10.0.0.5")    // others are not concerned
	settled(t, second.running)
	if got := addresses(api, "a.example") + ", " + addresses(api, "young.example"); got != "10.0.0.1 10.0.0.2, 10.0.0.3" {
		t.Errorf("sc has not been listed, and written is: %s", got)
	}
	if held := second.Status().Held; len(held) != 2 {
		t.Errorf("held: %v", held)
	}
	second.Listed("sc")
	wants(t, api, "a.example", "10.0.0.1")
	wants(t, api, "young.example", "no object")
}

// An object waits for a source that was never listed, and then for none, as the
// source has left the configuration after its records.
func TestWhatWaitsForASourceGoesWithIt(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "down")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc", "down")
	first := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	settled(t, first)
	first.stop()

	var left atomic.Bool
	again := newRegistry("sc", "down")
	again.say(shop.Service("down", "x.example"))
	second := start(t, api, again, func(_ *Config, o *Options) {
		o.Sources = func() []string {
			if left.Load() {
				return []string{"down"}
			}
			return []string{"sc", "down"}
		}
	})
	settled(t, second)
	if got := addresses(api, "a.example"); got != "10.0.0.1" {
		t.Fatalf("sc has not been listed, and written is: %s", got)
	}
	left.Store(true)
	second.RemoveSource("sc")
	wants(t, api, "a.example", "no object")
}

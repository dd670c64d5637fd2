package envoy

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Listeners that services share are debounced, and so is the DNS listener. Listeners of one
// address are not of many services, and are not debounced.
func TestListenersOfManyServicesWait(t *testing.T) {
	t.Parallel()
	waits := map[string]time.Duration{DNSChanges: time.Second, SharedListenerChanges: time.Minute}
	listeners := Types(func(changes string, _ world.Mode) world.Debounce { return world.Debounce{Quiet: waits[changes]} })[ListenerType]
	for name, want := range map[string]time.Duration{
		"dns": time.Second, "0.0.0.0_443": time.Minute, "::_8443": time.Minute, "127.0.0.1_80": time.Minute, "::1_80": time.Minute,
		"10.0.0.1_443": 0, "2001:db8::1_443": 0, names.VirtualOutbound: 0, names.VirtualInbound: 0, "0.0.0.0": 0, "reviews.example.com:80": 0,
	} {
		got := listeners.Debounce
		for _, class := range listeners.NameDebounces {
			if class.Match(name) {
				got = class.Debounce
				break
			}
		}
		for mode, d := range got {
			if d.Quiet != want {
				t.Errorf("changes of %s wait %s in mode %d, want %s", name, d.Quiet, mode, want)
			}
		}
	}
}

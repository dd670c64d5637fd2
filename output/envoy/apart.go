package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/push"
)

// What stands for some listeners, where it is said how long changes of a type wait.
const (
	// DNSChanges are those of the listener that answers lookups.
	DNSChanges = "dns"
	// SharedListenerChanges are those of listeners that services share.
	SharedListenerChanges = "sharedListeners"
)

// apartFor has changes of listeners that many services share wait by themselves: each
// sends the whole again, and listeners of one service are not to wait for them.
func apartFor(debounce func(typeName string, m push.Mode) push.Debounce) []push.NameDebounce {
	all := []struct {
		changes string
		is      func(name string) bool
		replace bool
	}{
		{DNSChanges, isDNS, false},
		{SharedListenerChanges, isShared, true}, // one of them takes what came in at addresses that have no listener any more
	}
	apart := make([]push.NameDebounce, len(all))
	for n, of := range all {
		apart[n].Is, apart[n].Replace = of.is, of.replace
		if debounce != nil {
			apart[n].Debounce = [...]push.Debounce{debounce(of.changes, push.WholeState), debounce(of.changes, push.Delta)}
		}
	}
	return apart
}

// isDNS reports whether a listener answers lookups.
func isDNS(name string) bool { return name == names.DNSListener }

// isShared reports whether a listener is of all services of a port that have no address
// of their own, or of a port of the edge. It has a chain for each host of TLS.
func isShared(name string) bool {
	address, _, ok := names.ParseSocket(name)
	return ok && slices.Contains([]string{names.AnyIPv4, names.AnyIPv6, names.LocalIPv4, names.LocalIPv6}, address)
}

package envoy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// What is put together step by step is what follows from calls through the listeners that
// the client is given, after any history and for any viewer, and no two contents have one
// version.
func TestAnswersFollowFromTheServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder, step := catalog.NewBuilderIn(ruled), answeringSettings().Begin(nil)
		byVersion := map[world.Version]map[string][]string{}
		for revision := range uint64(rapid.IntRange(1, 8).Draw(t, "steps")) {
			events := rapid.SliceOfN(rapid.Custom(drawCalled), 1, 5).Draw(t, "events")
			if rapid.IntRange(0, 4).Draw(t, "scoped") == 0 {
				events = append(events, model.Upsert{Record: model.Record{
					Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "m", Name: "s"}},
					Spec: model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "n/*", "*/x.com"}).Draw(t, "pattern"))},
				}})
			}
			change := builder.Apply(revision+1, events)
			u := step(builder.Snapshot(), change, true, "root")
			for _, c := range drawViewers(t) {
				got, version := answersTo(t, u.World, c)
				if diff := cmp.Diff(answersByCalling(t, builder.Snapshot(), u.World, c), got); diff != "" {
					t.Fatalf("seen from %s, %v %v:\n%s", c.Namespace, c.Proxy, c.Addresses, diff)
				}
				if last := byVersion[version]; last != nil && !cmp.Equal(last, got) {
					t.Fatal("two contents have one version")
				}
				byVersion[version] = got
			}
		}
	})
}

// drawViewers has a client of each namespace, one of them with something of its own.
func drawViewers(t *rapid.T) (list []world.Client) {
	for _, namespace := range []string{"n", "m", "o", "other"} {
		list = append(list, sidecarIn(namespace))
	}
	c := rapid.SampledFrom(list).Draw(t, "viewer")
	c.Addresses = rapid.SampledFrom([][]string{nil, {"10.9.9.9"}, {"fd00::9"}, {"10.9.9.9", "fd00::9"}}).Draw(t, "addresses of the viewer")
	c.Proxy.Interception = rapid.SampledFrom([]string{"", "TPROXY", "NONE"}).Draw(t, "interception")
	c.Proxy.Outbound = drawOutbound(t)
	return append(list, c)
}

// drawCalled draws what [drawSimilarService] does, with everything that decides where a
// connection goes: several ports, all that they may carry, and blocks of addresses.
func drawCalled(t *rapid.T) model.Event {
	event := drawSimilarService(t)
	u, ok := event.(model.Upsert)
	if !ok || rapid.IntRange(0, 2).Draw(t, "as it is") == 0 {
		return event
	}
	s, _ := u.Record.Spec.(model.Service)
	var on []model.Port
	for _, number := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint32{80, 81, 3306}), 1, 2, rapid.ID).Draw(t, "ports") {
		protocol := rapid.SampledFrom([]string{"HTTP", "TLS", "TLS", "TCP", "MYSQL", "UDP", "", ""}).Draw(t, "protocol")
		on = append(on, model.Port{Number: number, Name: "it", Protocol: protocol})
	}
	s.Ports = model.ListOf(on...)
	s.Addresses = model.ListOf(rapid.SampledFrom([][]string{
		nil, nil, nil, nil, {"10.0.0.1"}, {"fd00::1"}, {"240.240.0.1"}, {"2001:2::f0f0:1"}, {"10.9.0.0/16"}, {"240.0.0.0/4"}, {"127.0.0.0/8"},
	}).Draw(t, "called at")...)
	s.Resolution = rapid.SampledFrom([]model.Resolution{model.ResolutionStatic, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS}).Draw(t, "resolution")
	u.Record.Spec = s
	return u
}

// answersByCalling are what lookups are to be answered: the service that a viewer
// sees and that owns it has a name, whatever its case. Who has no address is answered with that of nobody,
// if calls of the name reach it there at each of its ports.
func answersByCalling(t failing, s *catalog.Snapshot, w world.World, c world.Client) map[string][]string {
	v := of(w.View(ListenerType, c))
	isIPv6 := len(c.Addresses) > 0 && strings.Contains(c.Addresses[0], ":")
	everyone, nobody := "0.0.0.0", "240.240.0.1"
	switch {
	case c.Proxy.Interception == "NONE" && isIPv6:
		everyone, nobody = "::1", "::1"
	case c.Proxy.Interception == "NONE":
		everyone, nobody = "127.0.0.1", "127.0.0.1"
	case isIPv6:
		everyone, nobody = "::", "2001:2::f0f0:1"
	}
	calls := newCaller(t, w, c, everyone)
	var services []catalog.ServiceDefinition
	for service := range s.Visible(v.viewer()) {
		services = append(services, service.ServiceDefinition)
	}
	taken, found := map[string]bool{}, map[string][]string{}
	for _, service := range owners("", "", v.Namespace, services) { // a lookup is of a name
		_, namespace, short := names.ShortName(service.Key.Host, "cluster.local")
		for domain := range vhost.DomainsOf(service, "cluster.local", "", short && namespace == v.Namespace) {
			name := strings.ToLower(domain)
			if taken[name] {
				continue
			}
			taken[name] = true
			// An address from a later registry may be owned by another service.
			addresses := slices.DeleteFunc(calledAt(service, c, isIPv6), func(address string) bool {
				return service.StandingAt("", address) != service.Standing && !ownsAtEach(service, address, owners(address, "", v.Namespace, services)) &&
					!calls.allReach(service, address, service.Key.Host)
			})
			switch {
			case !vhost.IsLookedUp(name):
			case len(addresses) > 0:
				found[name] = addresses
			case calls.allReachAtEach(service, allotted(service, c, isIPv6), name):
				found[name] = allotted(service, c, isIPv6)
			case slices.ContainsFunc(service.Ports, isStatic(service)) && calls.allReach(service, nobody, name):
				found[name] = []string{nobody}
			}
		}
	}
	return found
}

// allotted are the addresses that a name without any is given, as far as a client uses them: where
// a port is not called by host. The names are too few for two of one address.
func allotted(s catalog.ServiceDefinition, c world.Client, isIPv6 bool) (list []string) {
	needs := slices.ContainsFunc(s.Ports, func(p model.Port) bool {
		return isStatic(s)(p) && (p.Protocol == "TCP" || p.Protocol == "MYSQL" || p.Protocol == "")
	})
	if !needs || s.Base.Addresses.Len() > 0 || c.Proxy.Interception == "NONE" || strings.HasPrefix(s.Key.Host, "*") {
		return nil
	}
	a := names.AllotmentOf(s.Key.Host)
	switch {
	case isIPv6 && len(c.Addresses) == 1:
		return []string{a.IPv6()}
	case len(c.Addresses) > 1:
		return []string{a.IPv6(), a.IPv4()}
	default:
		return []string{a.IPv4()}
	}
}

// ownsAtEach reports whether no service before it, in the order of ownership, is called at an address and one of its ports.
func ownsAtEach(s catalog.ServiceDefinition, address string, inOrder []catalog.ServiceDefinition) bool {
	for _, o := range inOrder {
		if o.Key == s.Key {
			break
		}
		for _, port := range o.Ports {
			_, both := s.Port(port.Number)
			if both && port.Protocol != "UDP" && slices.Contains(slices.Collect(o.OwnAddressesIn("")), address) {
				return false
			}
		}
	}
	return true
}

func isStatic(s catalog.ServiceDefinition) func(model.Port) bool {
	return func(p model.Port) bool { return s.ResolutionAt(p.Number) == model.ResolutionStatic }
}

// calledAt are the addresses of a service itself, as far as a client uses them.
func calledAt(s catalog.ServiceDefinition, c world.Client, isIPv6 bool) (list []string) {
	for text := range s.Base.Addresses.All() {
		ip, err := netip.ParseAddr(text)
		if err == nil && c.Proxy.Interception != "NONE" && (len(c.Addresses) != 1 || ip.Is6() == isIPv6) {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return list
}

// allReachAtEach reports whether calls of some addresses by a name do, and whether there are any.
func (c *caller) allReachAtEach(s catalog.ServiceDefinition, addresses []string, name string) bool {
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(address string) bool { return !c.allReach(s, address, name) })
}

// allReach reports whether calls of an address by a name reach a service at all of its
// ports, in each way in which such a port is called.
func (c *caller) allReach(s catalog.ServiceDefinition, address, name string) (all bool) {
	host := strings.Replace(name, "*", "nobody-else", 1)
	for _, port := range s.Ports {
		var ways []string
		switch port.Protocol {
		case "UDP":
		case "HTTP":
			ways = []string{"GET"}
		case "TLS":
			ways = []string{"hello"}
		case "TCP", "MYSQL":
			ways = []string{"anything"}
		default:
			ways = []string{"GET", "anything"}
			if port.Number == 3306 { // where servers speak first
				ways = ways[1:]
			}
		}
		for _, says := range ways {
			if c.reaches(call{address, port.Number, says, host}) != names.Cluster(s.Key.Host, port.Number) {
				return false
			}
			all = true
		}
	}
	return all
}

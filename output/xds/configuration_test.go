package xds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Istiod is ready once each of its types was answered, be it by nothing, and so are
// types that nobody knows here.
func TestControlPlaneIsAnsweredAllItAsksFor(t *testing.T) {
	s := openSite(t, false, nil)
	s.put()
	stream := s.connect(adsSotw)
	asked := append(slices.Clone(istiodTypes), "new.istio.io/v1/Whatever")
	for _, typeURL := range asked {
		stream.say(ask(istiod(""), typeURL))
	}
	answered := map[string]bool{}
	for range asked {
		m := stream.sotw()
		if len(m.Resources) > 0 || answered[m.TypeUrl] {
			t.Errorf("answered %v", m)
		}
		answered[m.TypeUrl] = true
		stream.say(ack(m))
	}
	for _, typeURL := range asked {
		if !answered[typeURL] {
			t.Errorf("%s was not answered", typeURL)
		}
	}
	clients := s.out.Report().Clients.Engine.Clients()
	if len(clients) != 1 || clients[0].Client.Kind != resource.KindIstiod || len(clients[0].Types) != len(asked) {
		t.Errorf("shown as %+v", clients)
	}
}

// Types that do not exist are answered however many of them others have asked for.
func TestMadeUpTypesUseUpNothing(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", probe))...)
	for client := range 8 {
		stream := s.connect(adsSotw)
		for i := range 60 {
			typeURL := fmt.Sprintf("made.up/v%d/Kind%d", client, i)
			stream.say(ask(istiod(""), typeURL))
			if m := stream.sotw(); m.TypeUrl != typeURL || len(m.Resources) > 0 {
				t.Fatalf("asked for %s and was sent %v", typeURL, m)
			}
		}
		stream.say(ask(nil, entries))
		if m := stream.sotw(); m.TypeUrl != entries || len(m.Resources) != 1 {
			t.Fatalf("after types that do not exist it was sent %v", m)
		}
	}
}

// The names of types that do not exist leave the counts some time after the streams that
// asked for them, and others have their room.
func TestMadeUpTypesPass(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		counted := func(prefix string) (n int) {
			for _, c := range r.engine.Counts() {
				if strings.HasPrefix(c.Type, prefix) {
					n++
				}
			}
			return n
		}
		first := r.dial()
		for _, conn := range []*grpc.ClientConn{first, r.dial()} {
			s := openRaw(t, conn, adsSotw)
			s.say(ask(istiod(""), "made.up/v1/Stays"))
			s.sotw()
		}
		if err := first.Close(); err != nil { // the other client goes on to ask for it
			t.Fatal(err)
		}
		for round := range 2 {
			conn := r.dial()
			for client := range 2 {
				s := openRaw(t, conn, adsSotw)
				for i := range 50 {
					s.say(ask(istiod(""), fmt.Sprintf("round%d/v1/Kind%d-%d", round, client, i)))
					s.sotw()
				}
			}
			if own, other := counted(fmt.Sprintf("round%d/", round)), counted("unserved/"); own != 63 || other == 0 {
				t.Errorf("in round %d there are %d types of their own names, and %d of others", round, own, other)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11 * time.Minute)
			if own, other := counted(fmt.Sprintf("round%d/", round)), counted("unserved/"); own+other != 0 || counted("made.up/") != 1 {
				t.Errorf("after round %d there are still %d types of their own names, %d of others, and %d in use", round, own, other, counted("made.up/"))
			}
		}
	})
}

// A type is answered under the version that the client asks for, whichever that is,
// and under several at a time.
func TestEveryVersionOfATypeIsAnswered(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", probe))...)
	stream := s.connect(adsSotw)
	for _, version := range []string{"v1", "v1alpha3", "v7", "v8"} {
		typeURL := "networking.istio.io/" + version + "/ServiceEntry"
		for alone, to := range map[bool]raw{true: s.connect(adsSotw), false: stream} {
			to.say(ask(istiod(""), typeURL))
			if version == "v8" && !alone {
				if err := to.end(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "v8") {
					t.Errorf("a fourth version on one stream: %v", err)
				}
				continue
			}
			m := to.sotw()
			if m.TypeUrl != typeURL || len(resourcesIn(t, m.Resources)) != 1 {
				t.Errorf("asked for %s and was sent %s with %d", typeURL, m.TypeUrl, len(m.Resources))
			}
			to.say(ack(m))
		}
	}
}

// What istiod holds, it knows by the version in a resource. What is not in a response
// is gone.
func TestControlPlaneIsKeptUpToDate(t *testing.T) {
	s := openSite(t, false, nil)
	one := service("shop", probe)
	s.put(upserts(one, endpoint("shop", probe, "a", "10.0.0.1"), service("shop", "other.example"))...)
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	first := stream.sotw()
	before := resourcesIn(t, first.Resources)
	stream.say(ack(first))

	s.put(upserts(endpoint("shop", probe, "b", "10.0.0.2"))...)
	second := stream.sotw()
	after := resourcesIn(t, second.Resources)
	stream.say(ack(second))
	name := "shop/" + probe
	spec := &networking.ServiceEntry{}
	if err := after[name].GetBody().UnmarshalTo(spec); err != nil || len(spec.GetEndpoints()) != 2 {
		t.Errorf("%v: %v", err, spec)
	}
	if before[name].GetMetadata().GetVersion() == after[name].GetMetadata().GetVersion() || before["shop/other.example"].GetMetadata().GetVersion() != after["shop/other.example"].GetMetadata().GetVersion() {
		t.Errorf("of one change versions went from %v to %v", shown(t, before), shown(t, after))
	}

	s.put(deletes(endpoint("shop", probe, "b", "10.0.0.2"), service("shop", "other.example"))...)
	third := stream.sotw()
	now := resourcesIn(t, third.Resources)
	if len(now) != 1 || now[name].GetMetadata().GetVersion() != before[name].GetMetadata().GetVersion() {
		t.Errorf("back where it began it is %v", shown(t, now))
	}
}

// What is carried comes out as it came in.
func TestCarriedObjectsArePassedOnByteForByte(t *testing.T) {
	s := openSite(t, false, nil)
	content := "\x0a\x05probe\xfa\x3f\x03new" // with a field that nobody knows
	s.put(rule("one", content, map[string]string{"team": "a"}))
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), rules))
	r := resourcesIn(t, stream.sotw().Resources)["shop/one"]
	if string(r.GetBody().GetValue()) != content || r.GetBody().GetTypeUrl() != "type.googleapis.com/istio.networking.v1alpha3.DestinationRule" || r.GetMetadata().GetLabels()["team"] != "a" {
		t.Errorf("got %v", r)
	}
}

// An object may be for one revision of Istio only.
func TestRevisionsSeeTheirOwnObjects(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(rule("red", "1", map[string]string{"istio.io/rev": "red"}), rule("blue", "2", map[string]string{"istio.io/rev": "blue"}), rule("all", "3", nil))
	for revision, want := range map[string][]string{
		"": {"shop/all", "shop/blue", "shop/red"}, "red": {"shop/all", "shop/red"}, "green": {"shop/all"},
	} {
		stream := s.connect(adsSotw)
		stream.say(ask(istiod(revision), rules))
		if got := slices.Sorted(maps.Keys(resourcesIn(t, stream.sotw().Resources))); !slices.Equal(got, want) {
			t.Errorf("%q sees %v, want %v", revision, got, want)
		}
	}
}

// A control plane that comes back says nothing of what it holds, and deletes what its
// first answer lacks. So that waits until every source was listed.
func TestControlPlaneLosesNothingToASourceThatIsNotListed(t *testing.T) {
	s := openSite(t, false, nil)
	s.publish(false, upserts(service("shop", probe))...)
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	stream.say(ask(istiod(""), "core/v1alpha1/Nobodys"))
	if m := stream.sotw(); m.TypeUrl != "core/v1alpha1/Nobodys" {
		t.Errorf("it was sent %s", m.TypeUrl)
	}
	s.put(upserts(service("shop", "late.example"))...)
	if all := resourcesIn(t, stream.sotw().Resources); len(all) != 2 {
		t.Errorf("it was sent %v", shown(t, all))
	}
}

// If nobody can have anything of a source that was never listed, a control plane does not
// wait for it: an earlier process has stored what it served, or everything was listed
// once before the source was added.
func TestControlPlaneDoesNotWaitForASourceThatWasNeverRead(t *testing.T) {
	for name, site := range map[string]func(t *testing.T) *site{
		"restored": func(t *testing.T) *site {
			t.Helper()
			return openSiteWith(t, output.Env{Restored: []string{"registry"}, Sources: func() []string { return []string{"registry", "new"} }}, false, nil)
		},
		"listed before": func(t *testing.T) *site {
			t.Helper()
			s := openSite(t, false, nil)
			s.publish(true)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(t)
			s.publish(false, upserts(service("shop", probe))...)
			stream := s.connect(adsSotw)
			stream.say(ask(istiod(""), entries))
			m := stream.sotw()
			if all := resourcesIn(t, m.Resources); len(all) != 1 {
				t.Errorf("it was sent %v", shown(t, all))
			}
			stream.say(&discoveryv3.DiscoveryRequest{TypeUrl: entries, ResponseNonce: m.Nonce, VersionInfo: m.VersionInfo})
			s.put(upserts(service("shop", "late.example"))...)
			if all := resourcesIn(t, stream.sotw().Resources); len(all) != 2 {
				t.Errorf("when the source was listed it was sent %v", shown(t, all))
			}
		})
	}
}

// What was restored is of sources that are not configured any more, so it says nothing.
func TestControlPlaneWaitsIfOtherSourcesWereRestored(t *testing.T) {
	s := openSiteWith(t, output.Env{Restored: []string{"isthmus-writers"}, Sources: func() []string { return []string{"new"} }}, false, nil)
	s.publish(false, upserts(service("shop", probe))...)
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	stream.say(ask(istiod(""), "core/v1alpha1/Nobodys"))
	if m := stream.sotw(); m.TypeUrl != "core/v1alpha1/Nobodys" {
		t.Errorf("it was sent %s", m.TypeUrl)
	}
}

// A peer that takes increments is sent what changed, by name and version, and the
// difference when it comes back.
func TestPeerTakesIncrements(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", "one.example"), service("shop", "two.example"))...)
	first := s.connect(adsDelta)
	first.say(&discoveryv3.DeltaDiscoveryRequest{Node: istiod(""), TypeUrl: entries})
	held := map[string]string{}
	m := first.delta()
	for _, r := range m.Resources {
		held[r.Name] = r.Version
	}
	if len(held) != 2 || resourcesIn(t, anyOf(m))["shop/one.example"].GetMetadata().GetVersion() != held["shop/one.example"] {
		t.Fatalf("began with %v", held)
	}
	first.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: entries, ResponseNonce: m.Nonce})
	s.put(append(upserts(endpoint("shop", "one.example", "a", "10.0.0.1")), deletes(service("shop", "two.example"))...)...)
	m = first.delta()
	if len(m.Resources) != 1 || m.Resources[0].Name != "shop/one.example" || !slices.Equal(m.RemovedResources, []string{"shop/two.example"}) {
		t.Errorf("was sent %v without %v", m.Resources, m.RemovedResources)
	}

	back := s.connect(adsDelta)
	held["shop/one.example"] = m.Resources[0].Version
	back.say(&discoveryv3.DeltaDiscoveryRequest{Node: istiod(""), TypeUrl: entries, InitialResourceVersions: held})
	if m := back.delta(); len(m.Resources) != 0 || !slices.Equal(m.RemovedResources, []string{"shop/two.example"}) {
		t.Errorf("came back and was sent %v without %v", m.Resources, m.RemovedResources)
	}
}

// Over mTLS configuration is for the namespace of control planes. Who asks for nothing
// else is rejected, and a proxy goes on with what is its own.
func TestConfigurationIsForControlPlanes(t *testing.T) {
	s := openSite(t, true, nil)
	s.put(upserts(service("shop", probe))...)
	node := istiod("")
	node.Id = "one"
	own := s.connect(adsSotw, "spiffe://cluster.local/ns/istio-system/sa/istiod")
	own.say(ask(node, entries))
	if m := own.sotw(); len(m.Resources) != 1 {
		t.Errorf("a control plane was sent %v", m)
	}
	other := s.connect(adsSotw, inShop)
	other.say(ask(node, entries))
	if err := other.end(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), rootNamespace) || !strings.Contains(err.Error(), inShop) {
		t.Errorf("another was answered %v", err)
	}
	proxy := s.connect(adsSotw, inShop)
	proxy.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNames: []string{clusterOf(probe)}})
	first := proxy.sotw()
	proxy.say(ack(first))
	proxy.say(ask(nil, entries))
	proxy.say(&discoveryv3.DiscoveryRequest{TypeUrl: cds})
	if m := proxy.sotw(); first.TypeUrl != eds || m.TypeUrl != cds {
		t.Errorf("a proxy was sent %s, then %s", first.TypeUrl, m.TypeUrl)
	}
}

// Beyond loopback a client without proof reads configuration only if the settings say so.
// What proxies ask for is served to it all the same.
func TestConfigurationBeyondLoopbackNeedsProof(t *testing.T) {
	const inRoot, onLoopback, anywhere = "spiffe://cluster.local/ns/istio-system/sa/istiod", "127.0.0.1:0", "0.0.0.0:0"
	for name, c := range map[string]struct {
		listen  string
		readers xds.Readers
		secured bool
		denied  string // what the error says; empty if the client is served
	}{
		"loopback":              {onLoopback, "", false, ""},
		"loopback, off":         {onLoopback, xds.Off, false, "is off"},
		"beyond it":             {anywhere, "", false, "outputs.xds.configuration: any"},
		"beyond it, root":       {anywhere, xds.Root, false, "outputs.xds.configuration: any"},
		"beyond it, any":        {anywhere, xds.Any, false, ""},
		"beyond it, proven":     {anywhere, "", true, ""},
		"beyond it, proven off": {anywhere, xds.Off, true, "is off"},
	} {
		t.Run(name, func(t *testing.T) {
			// The settings name this address; the test binds one of loopback.
			s := openSiteWith(t, output.Env{}, c.secured, func(config *xds.Config) {
				config.Listen, config.Insecure, config.Configuration = c.listen, !c.secured, c.readers
			})
			s.put(upserts(service("shop", probe))...)
			stream := s.connect(adsSotw, inRoot)
			stream.say(ask(istiod(""), entries))
			if c.denied == "" {
				if m := stream.sotw(); len(m.Resources) != 1 {
					t.Errorf("it was sent %v", m)
				}
				return
			}
			if err := stream.end(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), c.denied) {
				t.Errorf("it was answered %v", err)
			}
			proxy := s.connect(adsSotw, inRoot)
			proxy.say(&discoveryv3.DiscoveryRequest{Node: istiod(""), TypeUrl: eds, ResourceNames: []string{clusterOf(probe)}})
			if m := proxy.sotw(); m.TypeUrl != eds {
				t.Errorf("a proxy was sent %s", m.TypeUrl)
			}
		})
	}
}

// Where all clients are proxies, none of this costs anything.
func TestConfigurationIsMadeOnceSomebodyAsks(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", probe))...)
	proxy := s.connect(adsSotw)
	proxy.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
	proxy.sotw()
	if s.begun.Load() != 0 {
		t.Error("it was made though nobody asked")
	}
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	if m := stream.sotw(); len(m.Resources) != 1 || s.begun.Load() != 1 {
		t.Errorf("asked for, it was begun %d times: %v", s.begun.Load(), m)
	}
}

// A service that Istio would not take is left out, and it is said why.
func TestWhatIstioWouldNotTakeIsLeftOutVisibly(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", probe), service("shop", "bad_host"))...)
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	if all := resourcesIn(t, stream.sotw().Resources); len(all) != 1 {
		t.Errorf("it was sent %v", shown(t, all))
	}
	report := s.out.Report()
	for service := range s.builder.Snapshot().ByHost("bad_host") {
		if reason := report.Clients.NotOffered(service, resource.KindIstiod); !strings.Contains(reason, "bad_host") {
			t.Errorf("it is not offered for %q", reason)
		}
	}
	for _, m := range report.Metrics {
		if m.Name == "isthmus_configuration_left_out" && m.Value != 1 {
			t.Errorf("%v are left out", m.Value)
		}
	}
}

// A healthy endpoint that Istio would not take is left out of its service, and that is
// shown for control planes alone: a proxy may have its own reasons.
func TestEndpointsThatIstioWouldNotTakeAreLeftOutVisibly(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(
		service("shop", probe), endpoint("shop", probe, "good", "192.0.2.1"), endpoint("shop", probe, "named", "one.example"), endpoint("shop", probe, "other", "two.example"),
	)...)
	stream := s.connect(adsSotw)
	stream.say(ask(istiod(""), entries))
	entry := &networking.ServiceEntry{}
	if err := resourcesIn(t, stream.sotw().Resources)["shop/"+probe].GetBody().UnmarshalTo(entry); err != nil || len(entry.GetEndpoints()) != 1 {
		t.Errorf("it was sent %v, %v", entry, err)
	}
	const want = "2 endpoints: its address is a name, and resolution STATIC takes IP addresses only"
	for service := range s.builder.Snapshot().ByHost(probe) {
		if reason := s.out.Report().Clients.NotOffered(service, resource.KindIstiod); reason != want {
			t.Errorf("what is left out is shown as %q, want %q", reason, want)
		}
	}
}

// Control planes read all of a type at each change, so changes wait a little for
// more, unless the peer takes increments.
func TestConfigurationWaitsForMore(t *testing.T) {
	config := xds.OutputKind(xds.Translation{}).New().(*xds.Config)
	for _, typeURL := range istiodTypes {
		if d := config.Debounce.Of(typeURL, world.WholeState); d.Quiet != time.Second || d.Max != 10*time.Second {
			t.Errorf("%s waits %v", typeURL, d)
		}
		if d := config.Debounce.Of(typeURL, world.Delta); d != (world.Debounce{}) {
			t.Errorf("increments of %s wait %v", typeURL, d)
		}
	}
	if d := config.Debounce.Of(cds, world.WholeState); d != (world.Debounce{}) {
		t.Errorf("clusters wait %v", d)
	}
}

func anyOf(m *discoveryv3.DeltaDiscoveryResponse) (list []*anypb.Any) {
	for _, r := range m.Resources {
		list = append(list, r.Resource)
	}
	return list
}

// The routes of a port and the listeners that services share stand for many, and are sent
// whole: while services keep changing they go out once a second. Everything else reaches
// proxies at once.
func TestAggregatesAreSentOnceASecondAtMost(t *testing.T) {
	config, _ := xds.OutputKind(xds.Translation{}).New().(*xds.Config)
	for _, mode := range []world.Mode{world.WholeState, world.Delta} {
		for _, aggregate := range []string{rds, envoy.DNSChanges, envoy.SharedListenerChanges} {
			d := config.Debounce.Of(aggregate, mode)
			begin := time.Now()
			if due := d.Due(begin, begin, 1); due != begin.Add(100*time.Millisecond) {
				t.Errorf("a change of %s by itself waits for %v", aggregate, due.Sub(begin))
			}
			if due := d.Due(begin, begin.Add(5*time.Second), 50); due != begin.Add(time.Second) {
				t.Errorf("the first of many changes of %s waits for %v", aggregate, due.Sub(begin))
			}
		}
		for _, other := range []string{cds, eds, lds} {
			if d := config.Debounce.Of(other, mode); d != (world.Debounce{}) {
				t.Errorf("changes of %s wait: %+v", other, d)
			}
		}
	}
}

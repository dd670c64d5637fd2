package envoy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// step is a change of a service, from what it was when the step before was
// active.
type step struct {
	what   string
	change func(s *service) []object // more objects of the file
}

// plain is where the steps begin.
func plain() service {
	return static("changes.localhost", endpoint{Address: "127.0.0.1"}, endpoint{Address: "127.0.0.2"})
}

// set makes a step of a change that needs no other objects.
func set(what string, change func(s *serviceSpec)) step {
	return step{what, func(s *service) []object {
		change(&s.Spec)
		return nil
	}}
}

// resolve makes a step to a resolution, with endpoints that go with it.
func resolve(to string) step {
	return set("resolution "+to, func(s *serviceSpec) {
		s.Resolution, s.Selector = to, nil
		switch to {
		case "NONE":
			s.Endpoints = nil
		case "DNS_ROUND_ROBIN":
			s.Endpoints = []endpoint{{Address: "a.localhost"}}
		case "DNS":
			s.Endpoints = []endpoint{{Address: "a.localhost"}, {Address: "b.localhost", Weight: 2}}
		default:
			s.Endpoints = plain().Spec.Endpoints
		}
	})
}

// everyResolution goes from each resolution to each other one.
func everyResolution() (steps []step) {
	for _, from := range resolutions {
		for _, to := range resolutions {
			if from != to {
				steps = append(steps, resolve(from), resolve(to))
			}
		}
	}
	return append(steps, resolve("STATIC"))
}

// everyChange are the other changes that a service can undergo.
func everyChange() []step {
	selectInstead := func(resolution string) step {
		return step{"endpoints by selector, " + resolution, func(s *service) []object {
			s.Spec.Resolution, s.Spec.Endpoints, s.Spec.Selector = resolution, nil, &selector{Labels: map[string]string{"app": "changes"}}
			return []object{
				workload{Name: "one", Spec: endpoint{Address: "127.0.0.1", Labels: s.Spec.Selector.Labels, Weight: 3}},
				workload{Name: "two", Spec: endpoint{Address: "127.0.0.3", Labels: s.Spec.Selector.Labels}},
			}
		}}
	}
	return []step{
		selectInstead("STATIC"), resolve("STATIC"), selectInstead("DNS"), resolve("NONE"), selectInstead("STATIC"), resolve("STATIC"),
		set("a port more", func(s *serviceSpec) { s.Ports = append(s.Ports, port{Number: 90, Name: "more", Protocol: "TCP"}) }),
		set("a port renamed", func(s *serviceSpec) { s.Ports[1].Name = "renamed" }),
		set("endpoints with ports of their own", func(s *serviceSpec) { s.Endpoints[0].Ports = map[string]uint32{"renamed": 9090} }),
		set("HTTP/2", func(s *serviceSpec) { s.Ports[0].Protocol = "GRPC" }),
		set("another protocol of HTTP/2", func(s *serviceSpec) { s.Ports[0].Protocol = "HTTP2" }),
		set("TCP", func(s *serviceSpec) { s.Ports[0].Protocol = "TCP" }),
		set("another number", func(s *serviceSpec) { s.Ports[0].Number = 8080 }),
		set("a target port", func(s *serviceSpec) { s.Ports[0].TargetPort = 8081 }),
		set("the port less", func(s *serviceSpec) { s.Endpoints[0].Ports, s.Ports = nil, s.Ports[:1] }),
		set("weights", func(s *serviceSpec) { s.Endpoints[0].Weight, s.Endpoints[1].Weight = 5, 9 }),
		set("a locality", func(s *serviceSpec) { s.Endpoints[0].Locality = "r1/z1/s1" }),
		set("both in one locality", func(s *serviceSpec) { s.Endpoints[1].Locality = "r1/z1/s1" }),
		set("another address", func(s *serviceSpec) { s.Endpoints[0].Address = "127.0.0.9" }),
		set("IPv6", func(s *serviceSpec) { s.Endpoints[0].Address = "::1" }),
		set("a unix socket", func(s *serviceSpec) { s.Endpoints[0].Address = "unix:///var/run/some.socket" }),
		set("no endpoints", func(s *serviceSpec) { s.Endpoints = nil }),
		set("4,000 endpoints", func(s *serviceSpec) { s.Endpoints = manyEndpoints(4000) }),
		set("endpoints again", func(s *serviceSpec) { s.Endpoints = plain().Spec.Endpoints }),
		resolve("DNS_ROUND_ROBIN"),
		set("another name", func(s *serviceSpec) { s.Endpoints[0].Address = "c.localhost" }),
		resolve("DNS"),
		set("a name less", func(s *serviceSpec) { s.Endpoints = s.Endpoints[:1] }),
		set("no names: the host itself", func(s *serviceSpec) { s.Endpoints = nil }),
		resolve("STATIC"),
		set("another host", func(s *serviceSpec) { s.Hosts = []string{"renamed.localhost"} }),
		set("two hosts", func(s *serviceSpec) {
			s.Hosts, s.Ports[0].Protocol = []string{"changes.localhost", "renamed.localhost"}, "HTTP"
		}),
		set("hidden from everybody", func(s *serviceSpec) { s.ExportTo = []string{"~"} }),
		set("shown again", func(s *serviceSpec) { s.ExportTo = nil }),
	}
}

// TestEveryChangeOfFormBecomesActive has one service undergo every change while
// Envoys of both modes are connected.
func TestEveryChangeOfFormBecomesActive(t *testing.T) {
	t.Parallel()
	everyChangeOfForm(t, newMesh(t))
}

func everyChangeOfForm(t *testing.T, m *mesh) {
	t.Helper()
	m.Hold = "min: 1000000" // from 4,000 endpoints to 2 is meant
	s := plain()
	m.Folder.write(t, "changes", s)
	m.Serve("")
	m.Connect(true)
	m.Connect(false)
	m.AwaitActive("the service")
	var took []time.Duration
	for _, next := range append(everyResolution(), everyChange()...) {
		more := next.change(&s)
		took = append(took, m.mustBecomeActive(next.what, func() { m.Folder.write(t, "changes", append(more, s)...) }))
	}
	for range 2 {
		took = append(took,
			m.mustBecomeActive("removal of the document", func() { m.Folder.write(t, "changes") }),
			m.mustBecomeActive("its return", func() { m.Folder.write(t, "changes", s) }),
			m.mustBecomeActive("removal of the file", func() { m.Folder.remove(t, "changes") }),
			m.mustBecomeActive("its return", func() { m.Folder.write(t, "changes", s) }))
	}
	figures.add(t, "%d changes, active in Envoys of both modes: %s", len(took), spread(took))
}

// mustBecomeActive makes a change and waits until each Envoy works with it,
// with nothing rejected and nothing warming.
func (m *mesh) mustBecomeActive(what string, change func()) time.Duration {
	m.Helper()
	began := time.Now()
	change()
	for _, p := range m.Proxies {
		until.NoError(m, 5*time.Millisecond, fmt.Sprintf("%s to be active", what), func() error { return m.Differs(p) })
	}
	took := time.Since(began)
	m.MustBeSettled()
	return took
}

package azure_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// A service is found on machines and on sets of both modes, named in any case, in one
// list, each machine once.
func TestServiceIsOnMachinesAndSets(t *testing.T) {
	t.Parallel()
	a := newAzure()
	a.machines["db"] = machine{address: "10.0.0.1"}
	a.machines["else"] = machine{address: "10.0.0.2"}
	a.sets["web"] = set{members: members("10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4", "10.0.1.5", "10.0.1.6")}
	a.sets["flex"] = set{flexible: true, members: members("10.0.2.1", "10.0.2.2", "10.0.2.3", "10.0.2.4", "10.0.2.5", "10.0.2.6")}
	inBubble(t, a, func(m *mirrored) {
		m.mustBe(source.StateLive)
		m.mustHave("all.example", "10.0.0.1", "10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4", "10.0.1.5", "10.0.1.6",
			"10.0.2.1", "10.0.2.2", "10.0.2.3", "10.0.2.4", "10.0.2.5", "10.0.2.6")
		m.mustHave("db.example", "10.0.0.1")
		if n := a.asked(""); n != 1+1+2+2+1+2+2 { // each list once: one machine; a set, its instances and interfaces; a set, its machines; interfaces
			t.Errorf("a round takes %d requests", n)
		}
	}, on("all.example", strings.ToUpper(vms+"db"), sets+"web", lower(sets+"flex"), vms+"db"), on("db.example", vms+"db"))
}

// A set that is made anew in the other mode is read as that.
func TestSetIsMadeAnewInAnotherMode(t *testing.T) {
	t.Parallel()
	a := newAzure()
	a.sets["web"] = set{members: members("10.0.0.1", "10.0.0.2")}
	inBubble(t, a, func(m *mirrored) {
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		a.change(func() { a.sets["web"] = set{flexible: true, members: members("10.0.0.2", "10.0.0.3")} })
		m.rounds(6)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
	}, on("web.example", sets+"web"))
}

// Machines are selected by their own tags, and uniform sets by theirs.
func TestTagsSelectMachines(t *testing.T) {
	t.Parallel()
	a := newAzure()
	billing := map[string]string{"App": "billing", "tier": "1"}
	a.machines["a"] = machine{address: "10.0.0.1", tags: billing}
	a.machines["b"] = machine{address: "10.0.0.2", tags: map[string]string{"app": "Billing"}} // values have their case
	a.machines["c"] = machine{address: "10.0.0.3", tags: billing, power: "deallocated"}
	a.machines["d"] = machine{address: "10.0.0.4", tags: billing, health: "unhealthy"}
	a.sets["web"] = set{tags: billing, members: members("10.0.1.1")}
	a.sets["other"] = set{members: members("10.0.1.2")}
	a.sets["flex"] = set{flexible: true, tags: billing, members: []machine{{name: "x", address: "10.0.2.1", tags: billing}, {name: "y", address: "10.0.2.2"}}}
	inBubble(t, a, func(m *mirrored) {
		m.mustHave("billing.example", "10.0.0.1", "10.0.0.3 UNHEALTHY", "10.0.0.4 UNHEALTHY", "10.0.1.1", "10.0.2.1")
		a.change(func() {
			a.machines["b"] = machine{address: "10.0.0.2", tags: billing}
			a.machines["a"] = machine{address: "10.0.0.1"}
		})
		m.rounds(1)
		m.mustHave("billing.example", "10.0.0.2", "10.0.0.3 UNHEALTHY", "10.0.0.4 UNHEALTHY", "10.0.1.1", "10.0.2.1")
	}, machines.Service{Host: "billing.example", Namespace: "shop", Ports: http8080, Tags: map[string]string{"app": "billing", "tier": "1"}})
}

// What Azure says of a machine decides whether it is given traffic, in each of the ways
// in which it is read.
func TestStatesOfMachines(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		machine machine
		want    model.Health
		alone   bool // it cannot be all that is read first: nothing is known then
	}{
		"runs":                               {machine{}, model.Healthy, false},
		"is updated":                         {machine{provisioning: "Updating"}, model.Healthy, false},
		"is made":                            {machine{provisioning: "Creating"}, model.Unhealthy, false},
		"failed":                             {machine{provisioning: "Failed"}, model.Unhealthy, false},
		"failed and healthy":                 {machine{provisioning: "Failed", health: "healthy"}, model.Healthy, false},
		"failed, health is not known":        {machine{provisioning: "Failed", health: "unknown"}, model.Unhealthy, false},
		"is deleted":                         {machine{provisioning: "Deleting"}, model.Terminating, false},
		"starts":                             {machine{power: "starting"}, model.Unhealthy, false},
		"stops":                              {machine{power: "stopping"}, model.Unhealthy, false},
		"is stopped":                         {machine{power: "stopped"}, model.Unhealthy, false},
		"is deallocated":                     {machine{power: "deallocated"}, model.Unhealthy, false},
		"is deallocated, was healthy":        {machine{power: "deallocated", health: "healthy"}, model.Unhealthy, false},
		"is healthy":                         {machine{health: "healthy"}, model.Healthy, false},
		"is unhealthy":                       {machine{health: "unhealthy"}, model.Unhealthy, false},
		"its health begins":                  {machine{health: "initializing"}, model.Unhealthy, false},
		"its health was never known":         {machine{health: "unknown"}, model.Unhealthy, true},
		"its power was never known":          {machine{noView: true}, model.Unhealthy, true},
		"its power is said to be not known":  {machine{power: "unknown"}, model.Unhealthy, true},
		"is updated while it is deallocated": {machine{provisioning: "Updating", power: "deallocating"}, model.Unhealthy, false},
	}
	a := newAzure()
	want := map[string]model.Health{}
	uniform, flexible, services := set{}, set{flexible: true}, []machines.Service{on("sets.example", sets+"u", sets+"f")}
	for i, name := range slices.Sorted(maps.Keys(tests)) {
		one := tests[name].machine
		one.name, one.address = string(rune('a'+i)), "10.0.0.1"
		uniform.members, flexible.members = append(uniform.members, one), append(flexible.members, one)
		a.machines[one.name] = one
		services = append(services, on(one.name+".example", vms+one.name))
		for _, at := range []string{"sets.example/" + subscription + "/shop/u/" + one.name, "sets.example/" + subscription + "/shop/f_" + one.name} {
			want[at] = tests[name].want
		}
		if !tests[name].alone {
			want[one.name+".example/"+subscription+"/shop/"+one.name] = tests[name].want
		}
	}
	a.sets["u"], a.sets["f"] = uniform, flexible
	inBubble(t, a, func(m *mirrored) {
		got := map[string]model.Health{}
		for rec := range m.store.List(model.Filter{Source: "azure", Kind: model.KindEndpoint}) {
			got[rec.Name] = rec.Spec.(model.Endpoint).Health
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}, services...)
}

// Where Azure does not know for a time how a machine is, it stays what it was.
func TestStateThatIsNotKnownStays(t *testing.T) {
	t.Parallel()
	a := newAzure()
	show := func(health string, noView bool) func() {
		return func() {
			a.sets["web"] = set{members: []machine{
				{name: "0", address: "10.0.0.1", health: health, noView: noView}, {name: "1", address: "10.0.0.2", power: "stopped", noView: noView},
			}}
		}
	}
	show("healthy", false)()
	inBubble(t, a, func(m *mirrored) {
		for _, now := range []struct {
			health string
			noView bool
			want   []string
		}{
			{"healthy", false, []string{"10.0.0.1", "10.0.0.2 UNHEALTHY"}},
			{"unknown", false, []string{"10.0.0.1", "10.0.0.2 UNHEALTHY"}},
			{"healthy", true, []string{"10.0.0.1", "10.0.0.2 UNHEALTHY"}},
			{"unhealthy", false, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2 UNHEALTHY"}},
			{"unknown", false, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2 UNHEALTHY"}},
		} {
			a.change(show(now.health, now.noView))
			m.rounds(1)
			m.mustHave("web.example", now.want...)
		}
	}, on("web.example", sets+"web"))
}

// A machine whose application does not answer what looks after its health is left out
// after three readings, as long as others are served. If there is no answer of any, what
// looks after them may have failed, and all stay. Such readings do not count: what was
// counted before goes on after them.
func TestMachineThatDoesNotAnswerIsLeftOutInTheEnd(t *testing.T) {
	t.Parallel()
	a := newAzure()
	show := func(health ...string) func() {
		return func() {
			var list []machine
			for i, one := range health {
				list = append(list, machine{name: strconv.Itoa(i), address: "10.0.0." + strconv.Itoa(i+1), health: one})
			}
			a.sets["u"], a.sets["f"] = set{members: list}, set{flexible: true, members: list}
		}
	}
	show("healthy", "healthy", "healthy")()
	inBubble(t, a, func(m *mirrored) {
		for _, now := range []struct {
			health [3]string
			rounds int
			want   []string
		}{
			{[3]string{"unknown", "healthy", "healthy"}, 2, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"healthy", "healthy", "healthy"}, 1, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"unknown", "healthy", "healthy"}, 2, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"unknown", "healthy", "healthy"}, 1, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"unknown", "unknown", "unknown"}, 9, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"unknown", "unknown", "healthy"}, 2, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"healthy", "unknown", "healthy"}, 1, []string{"10.0.0.1", "10.0.0.2 UNHEALTHY", "10.0.0.3"}},
			{[3]string{"healthy", "healthy", "healthy"}, 1, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
			{[3]string{"unknown", "healthy", "unhealthy"}, 2, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3 UNHEALTHY"}},
			{[3]string{"unknown", "unhealthy", "unhealthy"}, 5, []string{"10.0.0.1", "10.0.0.2 UNHEALTHY", "10.0.0.3 UNHEALTHY"}},
			{[3]string{"unknown", "healthy", "unhealthy"}, 1, []string{"10.0.0.1 UNHEALTHY", "10.0.0.2", "10.0.0.3 UNHEALTHY"}},
		} {
			a.change(show(now.health[:]...))
			for range now.rounds {
				a.asked("")
				for a.asked("ScaleSetVMsClient") == 0 { // in each, whatever the pauses between them
					m.pass(time.Second)
				}
			}
			m.mustHave("u.example", now.want...)
			m.mustHave("f.example", now.want...)
		}
	}, on("u.example", sets+"u"), on("f.example", sets+"f"))
}

// The primary configuration of the primary interface has the address.
func TestPrimaryAddressCounts(t *testing.T) {
	t.Parallel()
	a := newAzure()
	many := machine{name: "0", address: "10.0.0.1", moreInterfaces: []string{"10.9.0.1", "10.9.0.2"}, moreConfigurations: []string{"10.8.0.1", "fd00::1"}}
	a.sets["u"], a.sets["f"], a.machines["vm"] = set{members: []machine{many}}, set{flexible: true, members: []machine{many}}, many
	inBubble(t, a, func(m *mirrored) {
		for _, host := range []string{"u.example", "f.example", "vm.example"} {
			m.mustHave(host, "10.0.0.1")
		}
	}, on("u.example", sets+"u"), on("f.example", sets+"f"), on("vm.example", vms+"vm"))
}

// A machine without an interface is no endpoint. One whose interface is not in the list
// keeps its address.
func TestMachineWithoutInterface(t *testing.T) {
	t.Parallel()
	a := newAzure()
	show := func(third machine) func() {
		third.name, third.address = "2", "10.0.0.3"
		return func() {
			list := append(members("10.0.0.1"), machine{name: "1", noInterface: true}, third)
			a.sets["u"], a.sets["f"] = set{members: list}, set{flexible: true, members: list}
		}
	}
	show(machine{})()
	inBubble(t, a, func(m *mirrored) {
		for _, now := range []struct {
			third machine
			want  []string
		}{
			{machine{}, []string{"10.0.0.1", "10.0.0.3"}},
			{machine{hiddenInterface: true}, []string{"10.0.0.1", "10.0.0.3"}},
			{machine{noInterface: true}, []string{"10.0.0.1"}},
		} {
			a.change(show(now.third))
			m.rounds(1)
			m.mustBe(source.StateLive)
			m.mustHave("u.example", now.want...)
			m.mustHave("f.example", now.want...)
		}
		m.mustNotice("machine "+subscription+"/shop/u/1", "no primary network interface")
	}, on("u.example", sets+"u"), on("f.example", sets+"f"))
}

// Region, zone, tags, and what the configuration says stand on the records.
func TestRecords(t *testing.T) {
	t.Parallel()
	a := newAzure()
	a.machines["vm"] = machine{address: "10.0.0.1", zone: "2", tags: map[string]string{
		"app": "billing", "version": "v1", "cost center": "7", "owner": "Jo Doe", "topology.istio.io/network": "mine",
	}}
	a.sets["web"] = set{members: members("10.0.0.2")}
	s := on("billing.example", vms+"vm", sets+"web")
	s.Ports = []machines.Port{{Number: 80, Protocol: "http", TargetPort: 8080}, {Number: 9090, Name: "grpc", Protocol: "GRPC"}}
	s.Labels, s.Network, s.ExportTo = map[string]string{"version": "v2"}, "vnet", []string{"."}
	inBubble(t, a, func(m *mirrored) {
		var got []model.Spec
		for rec := range m.store.List(model.Filter{Source: "azure"}) {
			if rec.Kind == model.KindService || rec.Kind == model.KindEndpoint {
				got = append(got, rec.Spec)
			}
		}
		ports := model.MapOf(map[string]uint32{"http-80": 8080, "grpc": 9090})
		want := []model.Spec{
			model.Endpoint{
				Address: "10.0.0.1", Ports: ports, Exact: true, Network: "vnet",
				Labels: model.MapOf(map[string]string{"app": "billing", "version": "v2"}), Locality: model.Locality{Region: "westeurope", Zone: "westeurope-2"},
			},
			model.Endpoint{
				Address: "10.0.0.2", Ports: ports, Exact: true, Network: "vnet",
				Labels: model.MapOf(map[string]string{"version": "v2"}), Locality: model.Locality{Region: "westeurope"},
			},
			model.Service{
				Hosts: model.ListOf("billing.example"), ExportTo: model.ListOf("."), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
				Ports: model.ListOf(model.Port{Number: 80, Name: "http-80", Protocol: "HTTP", TargetPort: 8080}, model.Port{Number: 9090, Name: "grpc", Protocol: "GRPC"}),
			},
		}
		if !slices.EqualFunc(want, got, model.Spec.EqualSpec) {
			t.Errorf("want %+v\n got %+v", want, got)
		}
		if n := m.supervisor.Status().Ignored["tag that cannot be a label"]; n != 3 {
			t.Errorf("%d tags are said to be left out", n)
		}
	}, s)
}

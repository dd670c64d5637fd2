package laws_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// script is a history before it happens.
type script struct {
	Store    string                    // memory, disk: the last known good survives
	History  int                       // events the store remembers for those who lag; zero is a lot
	Bytes    int                       // likewise, that these events take
	Turn     int                       // names that a worker of the engine looks at in one turn; zero is a lot
	Late     [registries]time.Duration // how long listings and reports take to arrive
	Sources  []entry
	Debounce xds.Debounces
	Vault    bool // there are secrets from the start
	Kept     bool // another system hands over what it has at each start
	Objects  [registries][]model.Object
	Clients  []nature
	Steps    []step
}

// registries is how many there are, which sources read.
const registries = 3

// entry is a source in the configuration.
type entry struct {
	Name     string
	Registry int
	Hold     hold.Config
	Optional bool
}

// nature is what a client is.
type nature struct {
	Delta, GRPC    bool
	Namespace, App string
	Slow           bool          // it keeps its answers back at times
	Late           time.Duration // how late it answers
	Picky          bool          // it NACKs some resources
	Rollback       bool          // it takes nothing then of what came with them, if it can say what it lacks
	Split          bool          // it takes clusters by name and assignments on two streams, in two variants
	Secrets        bool          // it asks for secrets, and for types that nobody produces
}

// step is one thing that happens. Which fields matter depends on What.
type step struct {
	What     string
	Registry int
	Objects  []model.Object
	Which    int
	Fault    fault
	Report   string
	Mode     mode
	Wait     time.Duration
	Count    int // of listings
	Sources  []entry
	Client   nature
	Endpoint model.Endpoint
	Keep     bool
	Rest     bool // everything comes to rest before the next
}

func (s step) String() string {
	text := s.What
	switch s.What {
	case "put", "remove", "drop", "empty", "back", "fault", "endpoint", "churn", "secret", "baseline":
		text += fmt.Sprintf(" in %d, %s", s.Registry, s.Report)
		for _, o := range s.Objects {
			text += fmt.Sprintf("; %s %s via %q with %d: %+v", o.Record.Kind, o.Record.Key, o.Record.Path, len(o.Owned), o.Record.Spec)
		}
	case "mode", "outage":
		text += fmt.Sprintf(" of %d: %d", s.Registry, s.Mode)
	case "rename":
		text += fmt.Sprintf(" to %d, %s", s.Registry, s.Report)
	case "wave", "rollout", "halves", "comeback":
		text += fmt.Sprintf(" in %d, %d times every %s, with %+v", s.Registry, s.Count, s.Wait, s.Objects)
	case "wait":
		text += " " + s.Wait.String()
	case "reload", "start":
		text += fmt.Sprintf(" with %+v", s.Sources)
	}
	if s.What == "endpoint" {
		text += fmt.Sprintf("; %+v", s.Endpoint)
	}
	return fmt.Sprintf("%s (which %d, fault %d, keep %t, rest %t)", text, s.Which, s.Fault, s.Keep, s.Rest)
}

// whats is what may happen, as often as it should.
var whats = slices.Concat(
	slices.Repeat([]string{"put"}, 5), slices.Repeat([]string{"wait", "wave"}, 3), slices.Repeat([]string{"reload", "drop", "reconnect", "rollout", "comeback"}, 2),
	slices.Repeat([]string{"endpoint"}, 4), []string{"secret", "churn", "halves"}, []string{"revert", "restart", "baseline", "baseline"},
	[]string{"remove", "empty", "back", "back", "fault", "mode", "mode", "outage", "release", "rename", "rotate", "stop", "kill", "start", "connect", "disconnect", "hold", "answer"},
)

func drawScript(t *rapid.T) script {
	s := script{
		Store: rapid.SampledFrom([]string{"memory", "disk", "disk"}).Draw(t, "store"), History: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "history"), Sources: drawSources(t),
		Clients: rapid.SliceOfN(rapid.Custom(drawNature), 1, 3).Draw(t, "clients"),
		Steps:   rapid.SliceOfN(rapid.Custom(drawStep), 1, 16).Draw(t, "steps"),
	}
	s.Debounce, s.Vault = drawDebounces(t), rapid.IntRange(0, 3).Draw(t, "vault") > 0
	s.Kept = rapid.Bool().Draw(t, "kept")
	s.Bytes, s.Turn = rapid.SampledFrom([]int{0, 0, 3000}).Draw(t, "bytes"), rapid.SampledFrom([]int{0, 0, 1, 3, 8}).Draw(t, "turn")
	for i := range s.Objects {
		s.Late[i] = rapid.SampledFrom([]time.Duration{0, 0, 0, 150 * time.Millisecond, 400 * time.Millisecond}).Draw(t, "late")
		s.Objects[i] = rapid.SliceOfN(rapid.Custom(drawObject), 0, 4).Draw(t, "objects")
	}
	return s
}

func drawStep(t *rapid.T) step {
	s := step{What: rapid.SampledFrom(whats).Draw(t, "what"), Rest: rapid.IntRange(0, 3).Draw(t, "rest") > 0}
	s.Registry, s.Which = rapid.IntRange(0, registries-1).Draw(t, "registry"), rapid.IntRange(0, 9).Draw(t, "which")
	switch s.What {
	case "put":
		s.Objects = rapid.SliceOfN(rapid.Custom(drawObject), 1, 3).Draw(t, "objects")
		s.Report = drawTelling(t)
	case "remove", "drop", "empty", "back":
		s.Report = drawTelling(t)
	case "endpoint":
		s.Objects = rapid.SliceOfN(rapid.Custom(drawServiceObject), 1, 1).Draw(t, "objects")
		s.Endpoint, s.Report = drawEndpoint(t), rapid.SampledFrom(deltas).Draw(t, "tell")
	case "churn":
		s.Objects = drawChurn(t)
	case "wave", "rollout", "halves", "comeback":
		s.Objects = rapid.SliceOfN(rapid.Custom(drawServiceObject), 0, 2).Draw(t, "objects")
		s.Count, s.Keep = rapid.IntRange(1, 5).Draw(t, "times"), rapid.Bool().Draw(t, "keep")
		s.Wait = rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 11 * time.Second}).Draw(t, "wait")
	case "baseline":
		s.Objects = rapid.SliceOfN(rapid.Custom(drawServiceObject), 0, 2).Draw(t, "objects")
		s.Keep = rapid.Bool().Draw(t, "keep")
	case "rename":
		s.Report = rapid.SampledFrom([]string{"same", "empty", "half"}).Draw(t, "folder")
	case "secret":
		s.Report = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "of")
		s.Keep = rapid.Bool().Draw(t, "keep")
	case "restart":
		s.Keep = rapid.Bool().Draw(t, "keep")
	case "fault":
		s.Fault, s.Report = fault(rapid.IntRange(int(sound), int(poisoned)).Draw(t, "fault")), drawTelling(t)
	case "mode":
		s.Mode = rapid.SampledFrom([]mode{up, up, down, broken, stuck}).Draw(t, "mode")
	case "outage":
		s.Mode = rapid.SampledFrom([]mode{down, broken, stuck}).Draw(t, "mode")
	case "wait":
		s.Wait = rapid.SampledFrom([]time.Duration{300 * time.Millisecond, 4 * time.Second, 11 * time.Second, 31 * time.Second, 70 * time.Second, 3 * time.Minute}).Draw(t, "wait")
	case "reload", "start":
		s.Sources = drawSources(t)
	case "connect":
		s.Client = drawNature(t)
	case "reconnect":
		s.Keep = rapid.IntRange(0, 2).Draw(t, "keep") > 0
	}
	return s
}

// drawTelling draws how a registry lets others know: by something that makes
// them list, by a report of what changed, or not at all.
func drawTelling(t *rapid.T) string {
	return rapid.SampledFrom([]string{"listed", "listed", "reported", "silent"}).Draw(t, "tell")
}

func drawSources(t *rapid.T) []entry {
	names := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "names")
	entries := make([]entry, rapid.IntRange(1, 3).Draw(t, "sources"))
	for i := range entries {
		entries[i] = entry{
			Name: names[i], Registry: rapid.IntRange(0, registries-1).Draw(t, "registry"),
			Hold: hold.Config{
				Share: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "share"), Min: rapid.SampledFrom([]int{workloads, 4, 10, 1000}).Draw(t, "min"),
				For: rapid.SampledFrom([]time.Duration{20 * time.Second, time.Minute}).Draw(t, "for"),
			},
			Optional: rapid.IntRange(0, 2).Draw(t, "optional") == 0,
		}
	}
	return entries
}

func drawNature(t *rapid.T) nature {
	return nature{
		Delta: rapid.Bool().Draw(t, "delta"), GRPC: rapid.IntRange(0, 2).Draw(t, "grpc") == 0,
		Namespace: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "namespace"), App: rapid.SampledFrom([]string{"v", "w"}).Draw(t, "app"),
		Slow: rapid.IntRange(0, 3).Draw(t, "slow") == 0, Late: rapid.SampledFrom([]time.Duration{0, 0, 0, 0, lateness, 2 * lateness}).Draw(t, "late"), Picky: rapid.IntRange(0, 3).Draw(t, "picky") == 0,
		Split: rapid.IntRange(0, 4).Draw(t, "split") == 0, Secrets: rapid.Bool().Draw(t, "secrets"), Rollback: rapid.Bool().Draw(t, "rollback"),
	}
}

// workloads is how many a registry has at most. There is no drop that is
// suspicious because all workloads of a service are among it; see package source.
const workloads = 2

func drawObject(t *rapid.T) model.Object {
	namespace := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "namespace")
	path := drawPath(t)
	record := func(kind model.Kind, name string, spec model.Spec) model.Record {
		return model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Namespace: namespace, Name: name}}, Path: path, Spec: spec}
	}
	app := model.MapOf(map[string]string{"app": rapid.SampledFrom([]string{"v", "w"}).Draw(t, "app")})
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 8, 9:
		name, content := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "content")
		return model.Object{Record: record(carriedKind, name, model.Opaque{Content: content})}
	case 6:
		name := fmt.Sprint("workload-", rapid.IntRange(1, workloads).Draw(t, "name"))
		namespace = "a"
		e := drawEndpoint(t)
		e.Labels = app
		return model.Object{Record: record(model.KindWorkload, name, model.Workload{Endpoint: e})}
	case 7:
		namespace = rapid.SampledFrom([]string{"a", "b", lawRoot}).Draw(t, "scope of")
		scope := model.Scope{Hosts: model.ListOf(rapid.SampledFrom([]string{"*/*", "./*", "a/*", "*/x.example", "b/*.example", "~/*"}).Draw(t, "hosts"))}
		if rapid.Bool().Draw(t, "selects") {
			scope.WorkloadSelector = app
		}
		return model.Object{Record: record(model.KindScope, rapid.SampledFrom([]string{"s", "t"}).Draw(t, "name"), scope)}
	}
	o := drawServiceObject(t)
	if s, ok := o.Record.Spec.(model.Service); ok && rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		s.WorkloadSelector = app
		o.Record.Spec = s
	}
	return o
}

// crowd is how many endpoints some services have in addition.
const crowd = 18

// serviceNames are those of all services; their ports are 80 and 90.
var serviceNames = []string{"x", "y", "z"}

// drawServiceObject draws a service that owns its endpoints.
func drawServiceObject(t *rapid.T) model.Object {
	namespace := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "namespace")
	path := drawPath(t)
	record := func(kind model.Kind, name string, spec model.Spec) model.Record {
		return model.Record{Ref: model.Ref{Kind: kind, Key: model.Key{Namespace: namespace, Name: name}}, Path: path, Spec: spec}
	}
	name := rapid.SampledFrom(serviceNames).Draw(t, "name")
	s := drawService(t, spell(t, name+".example"))
	if rapid.IntRange(0, 4).Draw(t, "renamed") == 0 {
		name += "-renamed" // of the same host
	}
	o := model.Object{Record: record(model.KindService, name, s)}
	first := rapid.IntRange(1, 3).Draw(t, "first")
	for i := range rapid.IntRange(0, 6).Draw(t, "endpoints") {
		o.Owned = append(o.Owned, record(model.KindEndpoint, fmt.Sprint(name, "/", first+i), drawEndpoint(t)))
	}
	if path != "" && !isEcho(o) && rapid.Bool().Draw(t, "two ways") { // two Isthmuses had endpoints of it
		for i := range o.Owned {
			o.Owned[i].Path = []model.Path{path, "north"}[i%2]
		}
	}
	if rapid.IntRange(0, 11).Draw(t, "crowd") == 0 {
		for i := range crowd {
			o.Owned = append(o.Owned, record(model.KindEndpoint, fmt.Sprint(name, "/crowd-", i), model.Endpoint{Address: fmt.Sprintf("10.0.1.%d", i)}))
		}
	}
	return o
}

// drawChurn draws some states of one service.
func drawChurn(t *rapid.T) []model.Object {
	objects := rapid.SliceOfN(rapid.Custom(drawServiceObject), 2, 3).Draw(t, "objects")
	for i := range objects {
		objects[i].Record.Ref = objects[0].Record.Ref
		s, _ := objects[0].Record.Spec.(model.Service)
		now, _ := objects[i].Record.Spec.(model.Service)
		now.Hosts = model.ListOf(spell(t, nameOf(s.Hosts.At(0))))
		objects[i].Record.Spec = now
		for n := range objects[i].Owned {
			objects[i].Owned[n].Key = objects[0].Record.Key
			objects[i].Owned[n].Name += fmt.Sprint("/", n)
		}
	}
	return objects
}

func drawService(t *rapid.T, host string) model.Service {
	s := model.Service{
		Hosts: model.ListOf(host), Location: model.MeshInternal,
		Resolution: rapid.SampledFrom([]model.Resolution{
			model.ResolutionStatic, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS, model.ResolutionNone,
		}).Draw(t, "resolution"),
		ExportTo: model.ListOf(rapid.SampledFrom([][]string{nil, nil, {"*"}, {"."}, {"b"}}).Draw(t, "export to")...),
	}
	ports := []model.Port{{Number: 80, Name: "http", Protocol: rapid.SampledFrom([]string{"HTTP", "HTTP2"}).Draw(t, "protocol")}}
	if rapid.IntRange(0, 3).Draw(t, "ports") == 0 {
		ports = append(ports, model.Port{Number: 90, Name: "admin", Protocol: "TCP", TargetPort: 9090})
	}
	s.Ports = model.ListOf(ports...)
	return s
}

func drawEndpoint(t *rapid.T) model.Endpoint {
	n := rapid.IntRange(0, 11).Draw(t, "address")
	e := model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", 1+n/2), Weight: uint32(n % 2)}
	if n == 11 {
		e.Health = model.Unhealthy
	}
	return e
}

package servicecenter_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// Whatever happens to a registry, to the way there and to the mirror, and in
// whatever order: when it is over, the mirror is what one is that begins now.
func TestEveryHistoryConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		watch, steps := rapid.Bool().Draw(rt, "watch"), rapid.SliceOfN(rapid.Custom(drawStep), 1, 40).Draw(rt, "steps")
		wrong := ""
		synctest.Test(t, func(t *testing.T) { wrong = run(t, watch, steps) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// run has the steps happen, and says what is wrong in the end.
func run(t *testing.T, watch bool, steps []step) string {
	t.Helper()
	r := &rig{T: t, net: &network{listeners: map[string]*listener{}}, store: store.NewMemory(store.Config{}), log: &transcript.Log{}}
	r.Server = standin.New(prompt)
	r.serve(r.Server)
	defer r.Close()
	h := &history{rig: r, ids: map[string]string{}}
	for _, environment := range []string{"", "production"} {
		for _, called := range []string{"cart", "Cart", "users"} {
			s := step{Environment: environment, Called: called, Instance: "a", Address: 1, Port: 80}
			s.What = "register"
			h.take(s)
			s.What = "instance"
			h.take(s)
		}
	}
	h.begin(watch)
	defer func() { h.mirror.stop() }()
	for _, s := range steps {
		h.take(s)
		h.pass(s.After)
	}
	h.Repair()
	h.pass(40 * time.Second) // without an audit, which would find what was missed
	fresh := store.NewMemory(store.Config{})
	h.mirrorAs("fresh", "sc", h.config(), fresh).stop()
	if got, want := withoutPorts(h.mirror.stored()), withoutPorts(storedIn(fresh, "sc")); got != want {
		return fmt.Sprintf("stored:\n%s\n\nwant:\n%s\n\nlog:\n%s", got, want, h.log)
	}
	if s := h.mirror.Status(); s.State != source.StateLive {
		return fmt.Sprintf("the source is %s: %s", s.State, s.Reason)
	}
	return ""
}

// step is something that happens; what the kind has no use for is drawn in vain.
type step struct {
	What                          string
	Environment, Called, Instance string
	Address, Port, Times, Fault   int
	Up, Denied                    bool
	Route                         standin.Route
	After                         time.Duration
}

func drawStep(t *rapid.T) step {
	return step{
		What: rapid.SampledFrom([]string{
			"register", "instance", "instance", "instance", "status", "leave", "unregister", "fault", "key", "fix", "drop", "restart",
		}).Draw(t, "what"),
		Environment: rapid.SampledFrom([]string{"", "production"}).Draw(t, "environment"),
		Called:      rapid.SampledFrom([]string{"cart", "Cart", "users"}).Draw(t, "service"),
		Instance:    rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "instance"),
		Address:     rapid.IntRange(1, 9).Draw(t, "address"),
		Port:        rapid.IntRange(80, 83).Draw(t, "port"),
		Times:       rapid.IntRange(1, 4).Draw(t, "times"),
		Fault:       rapid.IntRange(0, 4).Draw(t, "fault"),
		Up:          rapid.Bool().Draw(t, "up"),
		Denied:      rapid.Bool().Draw(t, "denied"),
		Route:       rapid.SampledFrom([]standin.Route{standin.ListServices, standin.BatchFind, standin.RegisterService, standin.Watch}).Draw(t, "route"),
		After:       time.Duration(rapid.SampledFrom([]int{0, 100, 1000, 5000}).Draw(t, "after")) * time.Millisecond,
	}
}

// history is what happens to a registry and to the mirror of it.
type history struct {
	*rig
	ids     map[string]string // of services
	mirror  *mirror
	watches bool
}

func (h *history) begin(watches bool) {
	c := h.config()
	c.Watch, c.Audit, c.Timeout, h.watches = watches, time.Hour, time.Second, watches
	h.mirror = h.mirrorAs("one", "sc", c, h.store)
}

func (h *history) take(s step) {
	key := s.Environment + "/" + s.Called
	id := h.ids[key]
	switch s.What {
	case "register":
		h.ids[key] = h.service(s.Environment, s.Called, "1.0.0")
	case "instance":
		if id != "" {
			h.instance(id, s.Instance, fmt.Sprintf("10.0.0.%d:%d", s.Address, s.Port))
		}
	case "status":
		h.SetStatus(id, s.Instance, map[bool]string{true: "UP", false: "DOWN"}[s.Up])
	case "leave":
		h.UnregisterInstance(id, s.Instance)
	case "unregister":
		h.Unregister(id)
		delete(h.ids, key)
	case "fault":
		faults := []standin.Fault{standin.FailWith(standin.Internal), standin.Garbage(), standin.CutOff(30), standin.Empty(), standin.Hang()}
		h.Inject(s.Route, faults[s.Fault], s.Times)
	case "key":
		code := map[bool]standin.Code{true: standin.NoService, false: standin.Internal}[s.Denied]
		h.FailKeys(code, func(k standin.Key) bool { return k.Name == s.Called })
	case "fix":
		h.Repair()
	case "drop":
		h.DropWatchers()
	case "restart":
		h.mirror.stop()
		h.begin(h.watches)
	}
}

// withoutPorts leaves out the ports of services, of which some may be idle.
func withoutPorts(stored string) string {
	var all []string
	for line := range strings.SplitSeq(stored, "\n") {
		if service, _, ok := strings.Cut(line, ": "); ok {
			line = service
		}
		all = append(all, strings.TrimSuffix(line, ":"))
	}
	return strings.Join(all, "\n")
}

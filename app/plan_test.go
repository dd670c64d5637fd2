package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/config"
)

// parse reads a configuration that has these sources, each "name path" with an
// optional third word for one that is not required, and more text.
func parse(t *testing.T, sources, more string) *config.Config {
	t.Helper()
	var b strings.Builder
	b.WriteString("sources:\n")
	for entry := range strings.SplitSeq(sources, ",") {
		words := strings.Fields(entry)
		b.WriteString("- {name: " + words[0] + ", file: {path: " + words[1] + "}")
		if len(words) > 2 {
			b.WriteString(", required: false")
		}
		b.WriteString("}\n")
	}
	if !strings.Contains(more, "outputs:") {
		more += "\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"
	}
	c, problems := config.Parse([]byte(b.String()+more), func(string) (string, bool) { return "", false })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// summary is a plan for the eye.
type summary struct {
	Start, Stop, Restart  []string
	Reorder, Require, Log bool
	NeedsRestart          []string
}

func summarize(p plan) summary {
	return summary{
		names(&config.Config{Sources: p.Start}), append([]string{}, p.Stop...), names(&config.Config{Sources: p.Restart}),
		p.Reorder, p.Require, p.Log, append([]string{}, p.NeedsRestart...),
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		running, wanted         string // sources
		runningMore, wantedMore string
		want                    summary
	}{
		"the same":          {running: "a /a", wanted: "a /a"},
		"written otherwise": {running: "a /a", wanted: "a /a", wantedMore: "instance: isthmus\nlog: {level: info}\n# comment"},
		"added":             {running: "a /a", wanted: "a /a, b /b", want: summary{Start: []string{"b"}, Require: true}},
		"added in front":    {running: "a /a", wanted: "b /b, a /a", want: summary{Start: []string{"b"}, Require: true}},
		"removed":           {running: "a /a, b /b", wanted: "b /b", want: summary{Stop: []string{"a"}, Require: true}},
		"renamed":           {running: "a /a", wanted: "b /a", want: summary{Start: []string{"b"}, Stop: []string{"a"}, Require: true}},
		"other settings":    {running: "a /a", wanted: "a /b", want: summary{Restart: []string{"a"}}},
		"settings swapped":  {running: "a /a, b /b", wanted: "a /b, b /a", want: summary{Restart: []string{"a", "b"}}},
		"reordered":         {running: "a /a, b /b", wanted: "b /b, a /a", want: summary{Reorder: true}},
		"reordered around a removed one": {
			running: "a /a, c /c, b /b", wanted: "b /b, a /a", want: summary{Stop: []string{"c"}, Reorder: true, Require: true},
		},
		"no longer required": {running: "a /a", wanted: "a /a optional", want: summary{Require: true}},
		"required anew":      {running: "a /a optional, b /b", wanted: "a /a, b /b", want: summary{Require: true}},
		"log":                {running: "a /a", wanted: "a /a", wantedMore: "log: {level: debug}", want: summary{Log: true}},
		"admin":              {running: "a /a", wanted: "a /a", wantedMore: "admin: {listen: '127.0.0.1:9'}", want: summary{NeedsRestart: []string{"admin.listen"}}},
		"Envoys as they are": {
			running: "a /a", wanted: "a /a",
			runningMore: "outputs: {xds: {listen: '127.0.0.1:1', envoy: {outbound: allow, hosts: [{host: x.com, retries: {attempts: 2}}]}}}",
			wantedMore:  "outputs: {xds: {listen: '127.0.0.1:1', envoy: {hosts: [{host: x.com, retries: {}}]}}}",
		},
		"Envoys": {
			running: "a /a", wanted: "a /a",
			runningMore: "outputs: {xds: {listen: '127.0.0.1:1', envoy: {hosts: [{host: x.com, retries: {attempts: 2}}]}}}",
			wantedMore:  "outputs: {xds: {listen: '127.0.0.1:1', envoy: {hosts: [{host: x.com, retries: {attempts: 1}}]}}}",
			want:        summary{NeedsRestart: []string{"outputs.xds.envoy"}},
		},
		"everything fixed": {
			running: "a /a", wanted: "a /a",
			wantedMore: "instance: other\nadmin: {listen: '127.0.0.1:9'}\noutputs: {xds: {listen: '0.0.0.0:1', insecure: true}}",
			want:       summary{NeedsRestart: []string{"instance", "outputs.xds.listen", "outputs.xds.insecure", "admin.listen"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planFor(parse(t, test.running, test.runningMore), parse(t, test.wanted, test.wantedMore))
			want := test.want
			for _, list := range []*[]string{&want.Start, &want.Stop, &want.Restart, &want.NeedsRestart} {
				*list = append([]string{}, *list...)
			}
			if diff := cmp.Diff(want, summarize(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			something := len(want.Start)+len(want.Stop)+len(want.Restart) > 0 || want.Reorder || want.Require || want.Log
			if p.unchanged() == something {
				t.Errorf("it says that nothing is to do: %t", p.unchanged())
			}
		})
	}
}

func TestMergeOrderKeepsThePlaceOfWhatLeaves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ present, wanted, want string }{
		"renamed":               {"x a y", "x b y", "x a b y"},
		"renamed at first":      {"a y", "b y", "a b y"},
		"renamed and moved":     {"a y", "y b", "a y b"},
		"two in a row":          {"a b c", "c", "a b c"},
		"added":                 {"a", "b a", "b a"},
		"reordered":             {"a b c", "c a b", "c a b"},
		"behind one that moved": {"a b c", "c a", "c a b"},
	} {
		got := transition(strings.Fields(test.present), strings.Fields(test.wanted))
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Whoever is there or wanted has a place, and the file's order is kept.
func TestMergeOrderIsWhole(t *testing.T) {
	t.Parallel()
	all := strings.Fields("a b c d e")
	some := func(t *rapid.T, label string) []string {
		return rapid.Permutation(all).Draw(t, label)[:rapid.IntRange(0, len(all)).Draw(t, label+" size")]
	}
	rapid.Check(t, func(t *rapid.T) {
		present, wanted := some(t, "present"), some(t, "wanted")
		order := transition(present, wanted)
		both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(present, wanted))))
		if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, both) {
			t.Fatalf("%q of %q and %q", order, present, wanted)
		}
		if !within(wanted, order) {
			t.Fatalf("%q does not keep %q", order, wanted)
		}
	})
}

// within reports whether order is what is left of another after some were
// taken out.
func within(order, other []string) bool {
	for _, name := range order {
		i := slices.Index(other, name)
		if i < 0 {
			return false
		}
		other = other[i+1:]
	}
	return true
}

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
)

// parsed reads a configuration that is valid.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, problems := config.Parse([]byte(text), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// Who owns names and addresses follows from the configuration alone.
func TestSourcesHaveTheRightsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
sources:
- {name: files, file: {path: /a}}
- {name: east, kubernetes: {domain: east.example}}
- {name: partner, only: {hosts: ["*.partner.example"]}, owns: {hosts: [pay.shop.example]}, mcp: {address: "127.0.0.1:9901"}}
- {name: vips, only: {hosts: ["*"], addresses: [10.8.0.0/13]}, mcp: {address: "127.0.0.1:9902"}}
outputs: {xds: {listen: "127.0.0.1:1", envoy: {clusterDomain: corp.example}}}
`)
	want := catalog.Order{
		Sources: []string{"files", "east", "partner", "vips"}, Domains: []string{"corp.example", "east.example"},
		Rights: map[string]catalog.Rights{"east": {Dated: true}, "partner": {Owns: []string{"pay.shop.example"}, Yields: true}},
	}
	if diff := cmp.Diff(want, c.Order()); diff != "" {
		t.Error(diff)
	}
	files := parsed(t, `{sources: [{name: files, file: {path: /a}}], outputs: {mcp: {listen: "127.0.0.1:1"}}}`)
	if diff := cmp.Diff([]string{"cluster.local"}, files.Order().Domains); diff != "" {
		t.Error(diff)
	}
}

// Each source of another party that may list every host is warned of, and so is what a
// source takes from others by the hosts that it owns.
func TestTrustIsWarnedOf(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
sources:
- {name: files, file: {path: /a}}
- {name: east, kubernetes: {}}
- {name: other, only: {hosts: [a.other.example]}, file: {path: /b}}
- {name: partner, only: {namespaces: [partner]}, owns: {hosts: ["*.shop.example"]}, mcp: {address: "127.0.0.1:9901"}}
- {name: second, only: {hosts: [b.shop.example]}, owns: {hosts: [b.shop.example]}, mcp: {address: "127.0.0.1:9902"}}
outputs: {xds: {listen: "127.0.0.1:1"}}
`)
	want := []string{
		"sources[1].only: not set, so the source is trusted with every host",
		`sources[3].owns.hosts[0]: "*.shop.example" goes to partner whatever the order and the namespaces, and is taken from the sources that may list it as well: files, east, second`,
		`sources[4].owns.hosts[0]: "b.shop.example" goes to second whatever the order and the namespaces, and is taken from the sources that may list it as well: files, east`,
	}
	got := c.Warnings()
	if len(got) != len(want) {
		t.Fatalf("%d warnings:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("warned of is %q, want %q", got[i], want[i])
		}
	}
}

// A pattern that stands for nothing is an error with its field.
func TestOwnedHostsAreChecked(t *testing.T) {
	t.Parallel()
	_, problems := config.Parse([]byte(`{sources: [{name: a, owns: {hosts: [ok, "a b"]}, only: {addresses: [10.0.0.1/8]}, file: {path: /a}}], outputs: {xds: {listen: "127.0.0.1:1"}}}`), lookup)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	if diff := cmp.Diff([]string{"sources[0].only.addresses[0]", "sources[0].owns.hosts[1]"}, fields); diff != "" {
		t.Error(diff)
	}
}

// A split that switches off locality failover is warned of, unless near endpoints come first.
func TestSplitsWithoutFailoverAreWarnedOf(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
sources: [{name: files, file: {path: /a}}]
splits:
- {host: a.example, backends: [{subset: v1, weight: 1}]}
- {host: b.example, locality: first, backends: [{source: files, weight: 1}]}
- {host: c.example, backends: [{source: files, weight: 1}]}
outputs: {xds: {listen: "127.0.0.1:1", envoy: {defaults: {outlierDetection: {}}, hosts: [{host: a.example, subsets: [{name: v1, labels: {version: v1}}]}, {host: c.example, localityFailover: false}]}}}
`)
	var got []string
	for _, warning := range c.Warnings() {
		if strings.HasPrefix(warning, "splits") {
			got = append(got, warning)
		}
	}
	want := []string{`splits[0].locality: "ignore" switches off the locality failover of a.example that an output asks for; set first to keep it, or localityFailover: false for the host`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	labels := c.Order().Splits[catalog.ServiceKey{Host: "a.example"}].Backends[0].Labels
	if diff := cmp.Diff(map[string]string{"version": "v1"}, labels.Map()); diff != "" {
		t.Errorf("the subset: %s", diff)
	}
}

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/config"
)

// load reads a configuration beside kubeconfigs of three clusters.
func load(t *testing.T, dir, text string) *config.Config {
	t.Helper()
	for name, server := range map[string]string{"here": "https://api.here", "again": "https://API.here:443/", "there": "https://api.there"} {
		kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: %q}}]\n"+
			"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n", server)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What an API server says is there already, so it is not written there unless a
// configuration names it.
func TestSourcesOfTheAPIServerThatIsWrittenAreLeftOut(t *testing.T) {
	t.Parallel()
	const sources = `
sources:
- {name: files, file: {path: .}}
- {name: near, kubernetes: {kubeconfig: again}}
- {name: far, kubernetes: {kubeconfig: there}}
`
	for name, test := range map[string]struct {
		output string
		want   []string
	}{
		"all but its own": {"outputs: {istio: {kubeconfig: here}}", []string{"files", "far"}},
		"as named":        {"outputs: {istio: {kubeconfig: here, sources: [near, files]}}", []string{"files", "near"}},
		"none reads it":   {"outputs: {istio: {kubeconfig: elsewhere}}", []string{"files", "near", "far"}},
		"nothing written": {"outputs: {xds: {listen: '127.0.0.1:1'}}", []string{"files", "near", "far"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			elsewhere := "apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: 'https://api.here:6443'}}]\n" +
				"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n"
			if err := os.WriteFile(filepath.Join(dir, "elsewhere"), []byte(elsewhere), 0o600); err != nil {
				t.Fatal(err)
			}
			c := load(t, dir, sources+test.output)
			if got := selectionOf(c.Outputs[0].Settings, c).of(names(c)); !slices.Equal(got, test.want) {
				t.Errorf("it takes %v, and should %v", got, test.want)
			}
		})
	}
}

// A running process does not begin to write what an API server says to that same one.
func TestSourceThatWouldBeLeftOutWaitsForARestart(t *testing.T) {
	t.Parallel()
	const output = "outputs: {istio: {kubeconfig: here}}\n"
	running := load(t, t.TempDir(), output+"sources:\n- {name: files, file: {path: .}}\n- {name: far, kubernetes: {kubeconfig: there}}\n")
	wanted := load(t, t.TempDir(), output+"sources:\n- {name: near, kubernetes: {kubeconfig: here}}\n"+
		"- {name: far, kubernetes: {kubeconfig: again}}\n- {name: more, kubernetes: {kubeconfig: there}}\n")
	kept, needsRestart := keepSelections(running, wanted)
	if want := []string{"sources.near", "sources.far"}; !slices.Equal(needsRestart, want) {
		t.Errorf("a restart is needed for %v, and should be for %v", needsRestart, want)
	}
	if got, want := names(kept), []string{"far", "more"}; !slices.Equal(got, want) {
		t.Errorf("it runs %v, and should run %v", got, want)
	}
	was, _ := named(running, "far")
	if far, _ := named(kept, "far"); !sameSettings(far, was) {
		t.Errorf("far is read as %+v, and should be as it was", far.Settings)
	}
}

package app

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// serves starts an API server with one Lease, or another answer in its place.
func serves(t *testing.T, code int, object string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/istio-system/leases/isthmus" {
			t.Errorf("the request is %s %s", r.Method, r.URL)
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(object))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// clusters are addresses of API servers: of one in three spellings, of two others, of one
// that denies access, and of one that cannot be asked.
func clusters(t *testing.T) map[string]string {
	t.Helper()
	const lease = `{"kind": "Lease", "metadata": {"namespace": "istio-system", "name": "isthmus", "uid": %q}}`
	here := serves(t, http.StatusOK, fmt.Sprintf(lease, "u-1"))
	return map[string]string{
		"here": here, "again": here + "/", "elsewhere": strings.Replace(here, "127.0.0.1", "localhost", 1),
		"there":  serves(t, http.StatusOK, fmt.Sprintf(lease, "u-2")),
		"empty":  serves(t, http.StatusNotFound, `{"kind": "Status", "reason": "NotFound", "details": {"kind": "leases", "name": "isthmus"}}`),
		"silent": serves(t, http.StatusForbidden, `{"kind": "Status"}`),
		"proxy":  serves(t, http.StatusNotFound, "<html>"),
		"down":   serves(t, http.StatusServiceUnavailable, ""),
	}
}

// load reads a configuration beside kubeconfigs of clusters.
func load(t *testing.T, clusters map[string]string, text string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	for name, server := range clusters {
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

// sourcesOf reads each of some clusters, beside a folder.
func sourcesOf(clusters ...string) string {
	text := "sources:\n- {name: files, file: {path: .}}\n"
	for _, name := range clusters {
		text += fmt.Sprintf("- {name: %s, kubernetes: {kubeconfig: %[1]s}}\n", name)
	}
	return text
}

// What an API server says is there already, so it is not written there unless a
// configuration names it. As long as it is not known what a source reads, nothing of it
// is written.
func TestSourcesOfTheAPIServerThatIsWrittenAreLeftOut(t *testing.T) {
	t.Parallel()
	sources := sourcesOf("again", "elsewhere", "there", "empty", "silent", "proxy", "down", "absent")
	all := []string{"files", "again", "elsewhere", "there", "empty", "silent", "proxy", "down", "absent"}
	for name, test := range map[string]struct {
		output        string
		want, unknown []string
	}{
		"all but its own": {"outputs: {istio: {kubeconfig: here}}", []string{"files", "there", "empty"}, []string{"absent", "down", "proxy", "silent"}},
		"as named":        {"outputs: {istio: {kubeconfig: here, sources: [again, files]}}", []string{"files", "again"}, nil},
		"another one":     {"outputs: {istio: {kubeconfig: there}}", []string{"files", "again", "elsewhere", "empty"}, []string{"absent", "down", "proxy", "silent"}},
		"it says nothing": {"outputs: {istio: {kubeconfig: silent}}", []string{"files"}, []string{"absent", "again", "down", "elsewhere", "empty", "proxy", "there"}},
		"it is away":      {"outputs: {istio: {kubeconfig: down}}", []string{"files"}, []string{"absent", "again", "elsewhere", "empty", "proxy", "silent", "there"}},
		"nothing written": {"outputs: {xds: {listen: '127.0.0.1:1'}}", all, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, clusters(t), sources+test.output)
			// An API server that does not answer in time is unknown, and is asked again.
			until.NoError(t, time.Millisecond, "the sources that pass", func() error {
				got, _ := selectionOf(t.Context(), c.Outputs[0].Settings, c, false)
				passing := slices.DeleteFunc(names(c), func(name string) bool { return !got.passes(name) })
				for _, name := range passing {
					if !slices.Contains(test.want, name) {
						t.Fatalf("%s passes, and is to be left out", name) // not even for a moment
					}
				}
				if diff := cmp.Diff(test.want, passing); diff != "" {
					return fmt.Errorf("of what it takes, what was expected (-) is not what there is (+):\n%s", diff)
				}
				if diff := cmp.Diff(test.unknown, got.unknown); diff != "" {
					return fmt.Errorf("of what it may take, what was expected (-) is not what there is (+):\n%s", diff)
				}
				return nil
			})
		})
	}
}

// A running process does not begin to write what an API server says to that same one, in
// whatever spelling, nor what may be that.
func TestSourceThatWouldBeLeftOutWaitsForARestart(t *testing.T) {
	t.Parallel()
	const output = "outputs: {istio: {kubeconfig: here}}\n"
	at := clusters(t)
	running := load(t, at, output+sourcesOf("there", "down")+"- {name: far, kubernetes: {kubeconfig: there}}\n- {name: near, kubernetes: {kubeconfig: here}}\n")
	sources, _ := selectionOf(t.Context(), running.Outputs[0].Settings, running, false)
	b := newBranch(sources, running, nil, OptionalWait)
	b.gate.Stop()
	b.target, _ = targetOf(running.Outputs[0].Settings, false)
	for name, test := range map[string]struct {
		sources      string
		needsRestart []string
		runs         []string
	}{
		"nothing changes":       {sourcesOf("there", "down"), nil, []string{"files", "there", "down"}},
		"another one":           {sourcesOf() + "- {name: more, kubernetes: {kubeconfig: there}}\n", nil, []string{"files", "more"}},
		"its own":               {sourcesOf("here"), []string{"sources.here"}, []string{"files"}},
		"in another spelling":   {sourcesOf("elsewhere"), []string{"sources.elsewhere"}, []string{"files"}},
		"nobody knows":          {sourcesOf("absent"), []string{"sources.absent"}, []string{"files"}},
		"it does not say":       {sourcesOf("silent"), []string{"sources.silent"}, []string{"files"}},
		"its own from now on":   {sourcesOf() + "- {name: far, kubernetes: {kubeconfig: elsewhere}}\n", []string{"sources.far"}, []string{"files", "far"}},
		"no more its own":       {sourcesOf() + "- {name: near, kubernetes: {kubeconfig: there}}\n", []string{"sources.near"}, []string{"files", "near"}},
		"its own by other name": {sourcesOf() + "- {name: near, kubernetes: {kubeconfig: elsewhere}}\n", nil, []string{"files", "near"}},
		"not known as before":   {sourcesOf() + "- {name: down, kubernetes: {kubeconfig: here}}\n", nil, []string{"files", "down"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := load(t, at, output+test.sources)
			kept, needsRestart := keepSelections(t.Context(), []*branch{b}, running, wanted)
			if diff := cmp.Diff(test.needsRestart, needsRestart); diff != "" {
				t.Errorf("a restart is needed for others (+) than expected (-):\n%s", diff)
			}
			if diff := cmp.Diff(test.runs, names(kept)); diff != "" {
				t.Errorf("it runs others (+) than expected (-):\n%s", diff)
			}
			for _, s := range kept.Sources {
				from := wanted
				if slices.Contains(needsRestart, "sources."+s.Name) {
					from = running
				}
				if is, _ := named(from, s.Name); !sameSettings(s, is) {
					t.Errorf("%s is read as %+v", s.Name, s.Settings)
				}
			}
		})
	}
}

// A source passes once it is known that it reads something else, and never if it reads
// what is written. What has other settings by then is asked again.
func TestSourceIsDecidedAboutOnce(t *testing.T) {
	t.Parallel()
	at := clusters(t)
	missing := maps.Clone(at)
	delete(missing, "there")
	delete(missing, "here")
	c := load(t, missing, "outputs: {istio: {kubeconfig: again}}\n"+sourcesOf("there", "here"))
	sources, found := selectionOf(t.Context(), c.Outputs[0].Settings, c, false)
	b := newBranch(sources, c, []string{"there"}, OptionalWait)
	b.gate.Stop()
	b.target, _ = targetOf(c.Outputs[0].Settings, false)
	for _, one := range found {
		if one.relation != unknown || one.err == nil || !strings.Contains(one.err.Error(), "kubeconfig") {
			t.Errorf("%s is related as %d: %v", one.name, one.relation, one.err)
		}
	}
	if required, optional := b.requirements(); !slices.Equal(required, []string{"files", "here"}) || !slices.Equal(optional, []string{"there"}) {
		t.Errorf("it waits for %v and %v", required, optional)
	}
	wanted := load(t, at, "outputs: {istio: {kubeconfig: again}}\n"+sourcesOf("there", "here"))
	b.follow(wanted)
	for _, one := range found {
		if one.relation = other; b.settle(&one) {
			t.Errorf("%s is settled by what its settings were before", one.name)
		}
	}
	for _, one := range b.target.relate(t.Context(), b.undecided()) {
		if !b.settle(&one) || b.settle(&one) {
			t.Errorf("%s is not settled once", one.name)
		}
	}
	now := b.selection()
	if !now.passes("there") || now.has("here") || len(now.unknown) != 0 {
		t.Errorf("it takes %+v", now)
	}
	if required, optional := b.requirements(); !slices.Equal(required, []string{"files", "there"}) || len(optional) != 0 {
		t.Errorf("it waits for %v and %v", required, optional)
	}
}

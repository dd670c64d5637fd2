package feature_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// reloading is an isthmus that follows its configuration file, and an Envoy
// whose one stream stays up whatever the file says.
type reloading struct {
	*isthmus
	file   string
	envoy  *xdsclient.Client
	hangup chan os.Signal
	logged chan config.Log
}

// entry is a source: a name, and where it is read.
type entry struct {
	name     string
	from     *registry
	optional bool
	only     string // the hosts that it is confined to; empty for all
}

// startReloading starts with these sources.
func startReloading(t *testing.T, sources ...entry) *reloading {
	t.Helper()
	r := &reloading{file: filepath.Join(t.TempDir(), "isthmus.yaml"), hangup: make(chan os.Signal, 1), logged: make(chan config.Log, 10)}
	place(t, r.file, configOf(sources...))
	return r.start(t, sources[0].from)
}

// start starts with what the file says.
func (r *reloading) start(t *testing.T, markers *registry) *reloading {
	t.Helper()
	loaded, err := config.Load(r.file)
	if err != nil {
		t.Fatal(err)
	}
	r.isthmus = launch(t, loaded, []*registry{markers}, func(a *app.App) {
		a.Reload(app.Reloading{File: r.file, Now: r.hangup, Log: func(c config.Log) { r.logged <- c }})
	})
	r.envoy = xdsclient.NewDelta(t, channel(t, r.isthmus), xdsclient.Config{
		Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters,
	})
	r.envoy.Subscribe(xdsclient.CDS)
	return r
}

func configOf(sources ...entry) string {
	var b strings.Builder
	b.WriteString("sources:\n")
	for _, s := range sources {
		only := ""
		if s.only != "" {
			only = fmt.Sprintf("only: {hosts: [%q]}, localAddresses: allow, ", s.only)
		}
		fmt.Fprintf(&b, "- {name: %s, required: %t, %sfile: {path: %q}}\n", s.name, !s.optional, only, s.from.path)
	}
	fmt.Fprintf(&b, "outputs: {xds: {listen: %q}}\nadmin: {listen: %q}\n", loopback, loopback)
	return b.String()
}

// place makes a file say something, in one step.
func place(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".draft", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".draft", file); err != nil {
		t.Fatal(err)
	}
}

// Configure makes the file say something and waits until all of it holds.
func (r *reloading) Configure(sources ...entry) {
	r.t.Helper()
	place(r.t, r.file, configOf(sources...))
	r.hangup <- syscall.SIGHUP
	r.AwaitSources(sources...)
}

// AwaitSources waits until there are exactly these, in this order, and none of them is waited for.
func (r *reloading) AwaitSources(want ...entry) {
	r.t.Helper()
	await(r.t, "the sources to be those of the file", func() error {
		var list []admin.Source
		r.mustRead("/api/v1/sources", &list)
		same := slices.EqualFunc(list, want, func(a admin.Source, e entry) bool { return a.Name == e.name && a.State == "live" })
		if !same {
			return fmt.Errorf("they are %+v", list)
		}
		return nil
	})
}

// Config shows how much of the file is in use.
func (r *reloading) Config() admin.Config {
	r.t.Helper()
	var c admin.Config
	r.mustRead("/api/v1/config", &c)
	return c
}

// AwaitConfig waits until what is shown of the file is as a check demands.
func (r *reloading) AwaitConfig(what string, check func(admin.Config) bool) {
	r.t.Helper()
	await(r.t, what, func() error {
		if c := r.Config(); !check(c) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

// says demands a line of the verbose readiness, and a metric.
func (r *reloading) says(line, metric string) {
	r.t.Helper()
	code, ready, err := r.get("/readyz?verbose")
	if err != nil || code != 200 || !strings.Contains(ready, line) {
		r.t.Errorf("readiness is %d %v, without %q:\n%s", code, err, line, ready)
	}
	if _, metrics, err := r.get("/metrics"); err != nil || !strings.Contains(metrics, "\n"+metric+"\n") {
		r.t.Errorf("no metric %q: %v", metric, err)
	}
}

// holds tells everything a client has, by version, which stands for content.
func holds(c *xdsclient.Client) (list []string) {
	c.Read(func(s *xdsclient.State) {
		for _, typeURL := range []string{xdsclient.CDS, xdsclient.EDS} {
			for _, res := range s.Resources(typeURL) {
				if !strings.Contains(res.Name, "marker-") {
					list = append(list, res.Name+" "+cmp.Or(res.Version, "?"))
				}
			}
		}
	})
	return list
}

// MustNotHaveReceived demands that of a host nothing came but once, and nothing went.
func (r *reloading) MustNotHaveReceived(host string) {
	r.t.Helper()
	r.envoy.Read(func(s *xdsclient.State) {
		for _, typeURL := range []string{xdsclient.CDS, xdsclient.EDS} {
			if received, removed := s.Received(typeURL, cluster(host)), s.Removals(typeURL, cluster(host)); received != 1 || removed != 0 {
				r.t.Errorf("%s of %s was sent %d times and removed %d times", typeURL, host, received, removed)
			}
		}
	})
}

package envoy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// isthmus is the program, run as users run it.
type isthmus struct {
	*process.Process
	t          testing.TB
	XDS, Admin netip.AddrPort
	DataDir    string // its last known good
	config     string // the file
}

// newIsthmus describes an Isthmus that reads the folders of a mesh.
// The keys of outputs.xds.tls are added as they are written, and those of outputs.xds.envoy
// as the mesh has them.
func newIsthmus(t testing.TB, name string, m *mesh, tls string) *isthmus {
	t.Helper()
	i := &isthmus{t: t, XDS: freeAddress(t), Admin: freeAddress(t), DataDir: filepath.Join(m.Dir, name+".data")}
	i.config = filepath.Join(m.Dir, name+".yaml")
	others := ""
	if m.Others != nil {
		others = fmt.Sprintf("- {name: others, file: {path: %q}, hold: {%s}}", m.Others.path, m.Hold)
	}
	if tls != "" {
		tls = "tls: {" + tls + "}, "
	}
	config := fmt.Sprintf(`
sources:
- {name: files, file: {path: %q}, hold: {%s}}
%s
%s
outputs:
  xds: {listen: "%s", %senvoy: {%s}}
identity: {%s}
store: {dataDir: %q}
admin: {listen: "%s"}
log: {level: debug}
`, m.Folder.path, m.Hold, others, m.Sources, i.XDS, tls, m.Envoy, m.Identity, i.DataDir, i.Admin)
	if err := os.WriteFile(i.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	i.Process = process.New(m.Dir, name, programs.isthmus, "serve", "--config", i.config)
	t.Cleanup(i.Kill)
	return i
}

func freeAddress(t testing.TB) netip.AddrPort {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(address)
}

// Serve starts it, again if it was killed, and waits until it is ready.
func (i *isthmus) Serve() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), until.Patience)
	defer cancel()
	err := i.Start(ctx, func(context.Context) error {
		if probe.Get(i.url("/readyz")) == nil {
			return errors.New("/readyz is not 200")
		}
		return nil
	})
	if err != nil {
		i.t.Fatal(err)
	}
}

// Configure replaces a text of its configuration, which it reads when it is started again.
func (i *isthmus) Configure(old, text string) {
	i.t.Helper()
	config, err := os.ReadFile(i.config)
	if err != nil {
		i.t.Fatal(err)
	}
	if !strings.Contains(string(config), old) {
		i.t.Fatalf("%q is not in the configuration:\n%s", old, config)
	}
	if err := os.WriteFile(i.config, []byte(strings.Replace(string(config), old, text, 1)), 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// Forget deletes what it would remember after a restart.
func (i *isthmus) Forget() {
	i.t.Helper()
	if err := os.RemoveAll(i.DataDir); err != nil {
		i.t.Fatal(err)
	}
}

func (i *isthmus) url(path string) string { return "http://" + i.Admin.String() + path }

// ask asks the admin API.
func (i *isthmus) ask(path string, into any) error {
	page := probe.Get(i.url(path))
	if page == nil {
		return fmt.Errorf("no answer to GET %s", path)
	}
	return json.Unmarshal(page, into)
}

// Metric adds up all series of a metric whose labels contain a text.
func (i *isthmus) Metric(name, label string) (sum float64) {
	for series, value := range probe.ParseMetrics(i.t, probe.Get(i.url("/metrics"))) {
		if metric, labels, _ := strings.Cut(series, "{"); metric == name && strings.Contains(labels, label) {
			sum += value
		}
	}
	return sum
}

// Rejected says which manifests it has rejected, and which responses Envoys have
// NACKed.
func (i *isthmus) Rejected() error {
	var sources []struct {
		State    string
		Rejected []struct{ Object, Reason string } `json:"refused"`
	}
	if err := i.ask("/api/v1/sources", &sources); err != nil {
		return err
	}
	if len(sources) == 0 {
		return errors.New("there are no sources")
	}
	for _, s := range sources {
		if len(s.Rejected) > 0 || s.State != "live" {
			return fmt.Errorf("sources: %+v", sources)
		}
	}
	if n := i.Metric("isthmus_refusals_total", ""); n > 0 {
		return fmt.Errorf("%.0f responses were NACKed", n)
	}
	clients, err := i.clients()
	for _, c := range clients {
		for url, kind := range c.Types {
			if kind.NACKed > 0 || kind.State == "refused" {
				return fmt.Errorf("%s has NACKed %s: %s", c.ID, url, kind.Reason)
			}
		}
	}
	return err
}

// client is one of /api/v1/clients.
type client struct {
	ID, Identity string
	Proven       bool
	Notices      []struct{ Object, Text string }
	Types        map[string]struct {
		State, Reason             string
		Subscribed, Held, Pending int
		NACKed                    int `json:"refused"`
	}
}

func (i *isthmus) clients() ([]client, error) {
	var clients []client
	err := i.ask("/api/v1/clients", &clients)
	return clients, err
}

// listed is a service of the admin API.
type listed struct {
	Host, Namespace, Resolution string
	Ports                       []port
	Instances                   []struct {
		ServicePort, Port, Weight uint32
		Address, Health, Locality string
		Counts                    bool
	}
	Conflicts []struct{ Field, Output string }
}

// services are all that it serves, with their endpoints.
func (i *isthmus) services() ([]listed, error) {
	var short, all []listed
	if err := i.ask("/api/v1/services", &short); err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, s := range short {
		if asked[s.Host] {
			continue
		}
		asked[s.Host] = true
		var full []listed
		if err := i.ask("/api/v1/services/"+url.PathEscape(s.Host), &full); err != nil {
			return nil, err
		}
		all = append(all, full...)
	}
	if len(all) != len(short) {
		return nil, fmt.Errorf("the list has %d services, the services themselves are %d", len(short), len(all))
	}
	return all, nil
}

// closeIdle closes the connections over which pages were asked for.
func closeIdle() { http.DefaultClient.CloseIdleConnections() }

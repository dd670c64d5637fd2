package istio_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// bridge says how an Isthmus stands between a registry and an API server.
type bridge struct {
	registry  *registry
	namespace string  // in which it writes; the hosts of its services end in it
	instance  string  // the namespace if empty; no two installations have one
	user      string  // as whom the API server knows it; "isthmus" if empty
	alone     bool    // it writes without a lease
	late      *bridge // a second source, with a namespace of its own; may be nil
	dataDir   string  // where it keeps the last known good; nothing is kept if empty
	only      string  // the source that is written; all if empty
	hold      string  // how long equal listings must last that confirm a drop; the default if empty
	scoped    bool    // who uses whom is read, and written
	form      string  // of the endpoints; inline if empty
	qps       int     // writes per second; 50, the default, if zero
}

// Bridge describes an Isthmus that mirrors a registry into a new namespace.
func (a *api) Bridge(r *registry, namespace string) bridge {
	a.t.Helper()
	return bridge{registry: r, namespace: a.NewNamespace(namespace)}
}

// host is that of a service, and the name of the object that it is written as.
func (b bridge) host(service string) string { return service + "." + b.namespace + ".example" }

func (b bridge) withDefaults() bridge {
	if b.instance == "" {
		b.instance = b.namespace
	}
	if b.user == "" {
		b.user = "isthmus"
	}
	return b
}

// config is the configuration. It polls and writes faster than by default, and
// gives up a request sooner, so that tests need not wait.
func (b bridge) config(kubeconfig string) string {
	sources := b.source("legacy")
	if b.late != nil {
		sources += b.late.source("late")
	}
	return fmt.Sprintf(`
instance: %[1]s
sources: %[2]s
outputs:
  istio:
    kubeconfig: %[3]s
    debounce: {quiet: 50ms, max: 500ms}
    leaderElection: {enabled: %[4]t, name: %[1]s}
    sources: [%[5]s]
    sidecars: %[6]t
    endpoints: %[8]s
    qps: %[9]d
store: {dataDir: %[7]q}
admin: {listen: "127.0.0.1:0"}
log: {level: debug, format: text}
`, b.instance, sources, kubeconfig, !b.alone, b.only, b.scoped, b.dataDir, cmp.Or(b.form, "inline"), cmp.Or(b.qps, 50))
}

func (b bridge) source(name string) string {
	text := fmt.Sprintf(`
- name: %[1]s
  localAddresses: allow
  hold: {for: %[4]s}
  servicecenter:
    addresses: [%[2]s]
    host: "{{.Service}}.%[3]s.example"
    namespace: %[3]s
    poll: 100ms
    timeout: 500ms`, name, b.registry.URL(), b.namespace, cmp.Or(b.hold, "60s"))
	if b.scoped {
		text += fmt.Sprintf(`
    dependencies: {poll: 1s}
    scopes: {namespace: %s, workloadSelector: {app: "{{.Service}}"}}`, b.namespace)
	}
	return text
}

// isthmus is the program, run as users run it.
type isthmus struct {
	*cluster.Process
	t      *testing.T
	user   string
	admin  string // address
	config string // its file
	before int    // how long its log was when it was started
}

// serve runs "isthmus serve" until the test ends.
func serve(t *testing.T, a *api, b bridge) *isthmus {
	t.Helper()
	b = b.withDefaults()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := a.server.WriteKubeconfig(kubeconfig, b.user, group); err != nil {
		t.Fatal(err)
	}
	return serveConfig(t, b.user, b.config(kubeconfig))
}

// serveConfig is serve with a configuration, as it is written.
func serveConfig(t *testing.T, name, config string) *isthmus {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &isthmus{Process: cluster.NewProcess(dir, name, program, "serve", "--config", file), t: t, user: name, config: file}
	t.Cleanup(func() {
		i.Kill()
		if t.Failed() {
			t.Logf("--- log of %s\n%s", i.user, i.Log())
		}
	})
	i.Restart()
	return i
}

// Restart starts it, again if it was killed.
func (i *isthmus) Restart() {
	i.t.Helper()
	i.before = len(i.Log())
	ctx, cancel := context.WithTimeout(i.t.Context(), until.Patience)
	defer cancel()
	if err := i.Start(ctx, i.serving); err != nil {
		i.t.Fatal(err)
	}
}

var servingLine = regexp.MustCompile(`msg=serving .*admin=(\S+)`)

// serving is ready once the process says that it serves.
func (i *isthmus) serving(context.Context) error {
	found := servingLine.FindStringSubmatch(i.Log()[i.before:])
	if found == nil {
		return errors.New("it does not say that it serves")
	}
	i.admin = found[1]
	return nil
}

// Configure replaces the configuration, which it reads again.
func (i *isthmus) Configure(text string) {
	i.t.Helper()
	if err := os.WriteFile(i.config, []byte(text), 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// MustLive is that the process has not ended by itself.
func (i *isthmus) MustLive() {
	i.t.Helper()
	select {
	case <-i.Ended():
		i.t.Fatalf("%s has ended", i.user)
	default:
	}
}

// state is what /api/v1/sources says of a source.
type state struct {
	Name, State, Reason string
	Held                int
}

// source is the state of the only source.
func (i *isthmus) source() (state, error) {
	var sources []state
	if err := i.ask(http.MethodGet, "/api/v1/sources", &sources); err != nil {
		return state{}, err
	}
	if len(sources) != 1 {
		return state{}, fmt.Errorf("there are %d sources", len(sources))
	}
	return sources[0], nil
}

// AwaitState waits until the source is in a state.
func (i *isthmus) AwaitState(word string) {
	i.t.Helper()
	await(i.t, "the source to be "+word, func() error {
		s, err := i.source()
		if err == nil && s.State != word {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
}

// Release waits until so many records are held and releases them, as an
// operator would.
func (i *isthmus) Release(records int) {
	i.t.Helper()
	await(i.t, fmt.Sprintf("%d held records", records), func() error {
		s, err := i.source()
		if err == nil && s.Held != records {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
	if err := i.ask(http.MethodPost, "/api/v1/sources/legacy/release", nil); err != nil {
		i.t.Fatal(err)
	}
}

// ask asks the admin API.
func (i *isthmus) ask(method, path string, into any) error {
	request, err := http.NewRequestWithContext(i.t.Context(), method, "http://"+i.admin+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true // no connection is left behind
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

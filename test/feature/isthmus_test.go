package feature_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// loopback is any free port.
const loopback = "127.0.0.1:0"

// isthmus is the application, in this process, set up from a configuration file.
type isthmus struct {
	t          *testing.T
	XDS, Admin string // addresses

	cancel  context.CancelFunc
	ended   chan struct{}
	log     transcript.Log
	witness witness
	clients []func() // end those that were dialled
}

// start starts an Isthmus that reads registries, in this order.
func start(t *testing.T, registries ...*registry) *isthmus {
	t.Helper()
	return startOn(t, loopback, registries...)
}

// startOn is start for a given listener.
func startOn(t *testing.T, listen string, registries ...*registry) *isthmus {
	t.Helper()
	return startWith(t, configFor(listen, registries), registries...)
}

// startWith is start for a given configuration.
func startWith(t *testing.T, configuration string, registries ...*registry) *isthmus {
	t.Helper()
	return launch(t, load(t, configuration), registries, func(*app.App) {})
}

// launch starts an Isthmus after it was prepared. Markers go to registries.
func launch(t *testing.T, loaded *config.Config, registries []*registry, prepare func(*app.App)) *isthmus {
	t.Helper()
	i := &isthmus{t: t, ended: make(chan struct{})}
	logger := slog.New(slog.NewTextHandler(&i.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var a *app.App
	await(t, "the listeners", func() (err error) { // one used before may have been taken in between
		a, err = app.New(t.Context(), loaded, "test", logger)
		return err
	})
	prepare(a)
	i.Admin = a.AdminAddr().String()
	if i.XDS = a.Addr("xds").String(); a.Addr("xds").Network() == "unix" {
		i.XDS = "unix://" + i.XDS
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	i.cancel = cancel
	go func() {
		defer close(i.ended)
		if err := a.Run(ctx); err != nil {
			t.Errorf("the application ended: %v", err)
		}
	}()
	i.witness.registries = registries
	t.Cleanup(i.end)
	return i
}

// configFor writes a configuration.
func configFor(listen string, registries []*registry) string {
	var b strings.Builder
	b.WriteString("sources:\n")
	for _, r := range registries {
		fmt.Fprintf(&b, "- name: %s\n  required: %t\n  file: {path: %q}\n", r.name, !r.optional, r.path)
	}
	fmt.Fprintf(&b, "outputs:\n  xds: {listen: %q}\n", listen)
	fmt.Fprintf(&b, "admin: {listen: %q}\n", loopback)
	return b.String()
}

func load(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// Stop does what a SIGTERM does, and waits until the application has ended.
func (i *isthmus) Stop() {
	i.t.Helper()
	i.cancel()
	select {
	case <-i.ended:
	case <-time.After(until.Patience):
		i.t.Errorf("the application did not end within %s", until.Patience)
	}
}

// end shows what is known while there still are clients, and ends everything.
func (i *isthmus) end() {
	if i.t.Failed() {
		i.report()
	}
	for _, end := range i.clients {
		end()
	}
	i.Stop()
}

// report shows what the application knew when a test failed.
func (i *isthmus) report() {
	var b strings.Builder
	for _, path := range []string{"/readyz?verbose", "/api/v1/sources", "/api/v1/services", "/api/v1/clients"} {
		code, body, err := i.get(path)
		fmt.Fprintf(&b, "--- GET %s: %d %v\n%s\n", path, code, err, body)
	}
	i.t.Logf("%s--- log\n%s", b.String(), i.log.String())
}

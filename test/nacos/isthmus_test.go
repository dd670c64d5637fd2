package nacos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// isthmus is the program, run as users run it, with one source.
type isthmus struct {
	*process.Process
	name       string
	xds, admin string // addresses
	config     string // file
}

// newIsthmus describes an Isthmus that is not started yet, with an entry of sources.
func newIsthmus(name, source string) (*isthmus, error) {
	dir, err := folder(name)
	if err != nil {
		return nil, err
	}
	i := &isthmus{name: name, config: filepath.Join(dir, "isthmus.yaml")}
	for _, address := range []*string{&i.xds, &i.admin} {
		if *address, err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	i.Process = process.New(dir, "isthmus", isthmusIn(os.Getenv(variableFolder)), "serve", "--config", i.config)
	return i, os.WriteFile(i.config, fmt.Appendf(nil, `
sources:
- %s
outputs:
  xds: {listen: %q}
admin: {listen: %q}
log: {format: text}
`, source, i.xds, i.admin), 0o600)
}

// Serve starts it, and waits until it has read its source.
func (i *isthmus) Serve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	return i.Start(ctx, func(context.Context) error {
		if probe.Get("http://"+i.admin+"/readyz") == nil {
			return errors.New("/readyz is not 200")
		}
		return nil
	})
}

// ask asks the admin API.
func (i *isthmus) ask(path string, into any) error {
	page := probe.Get("http://" + i.admin + path)
	if page == nil {
		return fmt.Errorf("no answer to GET %s", path)
	}
	return json.Unmarshal(page, into)
}

// source is the one of /api/v1/sources.
type source struct {
	State, Reason, Age string
	Held               int
	Rejected           []struct{ Object, Where, Field, Reason string } `json:"refused"`
}

// becomes waits until the source is in a state, and returns what is said of it.
func (i *isthmus) becomes(t *testing.T, state string) (s source) {
	t.Helper()
	await(t, i.name+" to be "+state, func() error {
		var sources []source
		if err := i.ask("/api/v1/sources", &sources); err != nil {
			return err
		}
		if s = sources[0]; s.State != state {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	return s
}

// service is one of /api/v1/services/HOST.
type service struct {
	Host, Namespace string
	Ports           []struct {
		Number         int
		Name, Protocol string
	}
	Instances []struct {
		Address string
		Port    int
		Labels  map[string]string
		Weight  int
		Held    bool
	}
}

// service is what the admin API says of a host.
func (i *isthmus) service(t *testing.T, host string) service {
	t.Helper()
	var list []service
	if err := i.ask("/api/v1/services/"+url.PathEscape(host), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("%s: %d services are %s", i.name, len(list), host)
	}
	return list[0]
}

// release has what is held deleted, as "isthmus sources release" does.
func (i *isthmus) release(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, isthmusIn(os.Getenv(variableFolder)), "sources", "release", "nacos", "--admin", "http://"+i.admin)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", i.name, err, out)
	}
}

// closeIdle closes the connections over which pages were asked for.
func closeIdle() { http.DefaultClient.CloseIdleConnections() }

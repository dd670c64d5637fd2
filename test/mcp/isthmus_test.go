package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// isthmus is the program, run as users run it.
type isthmus struct {
	*process.Process
	t      *testing.T
	admin  string
	config string
}

// start starts an Isthmus with some sections of a configuration until the test ends.
func start(t *testing.T, sections string) *isthmus {
	t.Helper()
	dir := t.TempDir()
	i := &isthmus{t: t, admin: freeAddress(t), config: filepath.Join(dir, "isthmus.yaml")}
	text := fmt.Sprintf("%s\nadmin: {listen: %q}\nstore: {dataDir: %q}\nlog: {level: debug, format: text}\n", sections, i.admin, filepath.Join(dir, "data"))
	if err := os.WriteFile(i.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i.Process = process.New(dir, "isthmus", program, "serve", "--config", i.config)
	i.serve()
	t.Cleanup(func() {
		i.stop()
		if t.Failed() {
			t.Logf("isthmus has logged:\n%s", i.Log())
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return i
}

// serve starts it, again if it has ended, and waits until it answers.
func (i *isthmus) serve() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := i.Start(ctx, func(context.Context) error {
		_, err := i.get("/livez")
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
}

// stop asks it to end, and waits until it has.
func (i *isthmus) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = i.Terminate(ctx) // it may be gone
}

func (i *isthmus) get(path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.admin+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// service is one as the admin API has it.
type service struct {
	Host      string
	Namespace string
	Endpoints struct{ Healthy, Total int }
}

// services expects just these hosts, with healthy and all endpoints of each.
func (i *isthmus) services(want map[string][2]int) {
	i.t.Helper()
	await(i.t, fmt.Sprint(want), func() error {
		text, err := i.get("/api/v1/services")
		if err != nil {
			return err
		}
		var list []service
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		got := map[string][2]int{}
		for _, s := range list {
			got[s.Host] = [2]int{s.Endpoints.Healthy, s.Endpoints.Total}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// sourceStatus is that of a source as the admin API has it.
type sourceStatus struct {
	Name, Kind, State, Reason string
	Refused                   []struct{ Object, Reason string }
	Types                     []struct {
		Type, Reason                           string
		Resources, Received, Accepted, Refused int
	}
}

// source expects a state of the one source, and returns what is said of it.
func (i *isthmus) source(state string) (s sourceStatus) {
	i.t.Helper()
	await(i.t, "the source to be "+state, func() error {
		text, err := i.get("/api/v1/sources")
		if err != nil {
			return err
		}
		var list []sourceStatus
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		for _, s = range list {
			if s.Kind == "mcp" && s.State == state {
				return nil
			}
		}
		return fmt.Errorf("it says %s", text)
	})
	return s
}

// freeAddress is one on loopback where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

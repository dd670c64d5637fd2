// Package examples_test keeps the examples valid: what users copy works.
package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/xds"
	center "github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/instance"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configurations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/isthmus.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return files
}

func TestValidateAcceptsExamples(t *testing.T) {
	t.Parallel()
	for _, file := range configurations(t) {
		var out, errOut bytes.Buffer
		if status := cli.Main(t.Context(), "test", []string{"validate", "--config", file}, nil, &out, &errOut); status != 0 {
			t.Errorf("status %d: %s", status, errOut.String())
		}
	}
}

// Served, nothing of an example is rejected or left out, and every service has
// an endpoint and is offered to every kind of client.
func TestExamplesAreServedWhole(t *testing.T) {
	t.Parallel()
	for _, file := range configurations(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			url := serve(t, file)
			var sources []admin.Source
			get(t, url+"/api/v1/sources", &sources)
			for _, s := range sources {
				if len(s.Rejected) > 0 || len(s.Ignored) > 0 {
					t.Errorf("source %s: rejected %v, ignored %v", s.Name, s.Rejected, s.Ignored)
				}
			}
			var services []admin.Service
			get(t, url+"/api/v1/services", &services)
			if len(services) < 2 {
				t.Errorf("%d services", len(services))
			}
			for _, s := range services {
				if s.Endpoints.Healthy == 0 || len(s.Conflicts) > 0 || len(s.NotOffered) > 0 {
					t.Errorf("service %s: %+v", s.Host, s)
				}
			}
		})
	}
}

// serve runs an Isthmus, on ports that are free, until the test ends. It
// returns where the admin API is, once everything was read.
func serve(t *testing.T, file string) string {
	t.Helper()
	loaded, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range loaded.Sources {
		if c, ok := s.Settings.(*center.Config); ok {
			c.Addresses = []string{registry(t)}
		}
	}
	loaded.Outputs.Of("xds").(*xds.Config).Listen, loaded.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	url := "http://" + instance.Run(t, loaded).AdminAddr().String()
	await(t, url+"/readyz")
	awaitLive(t, url)
	return url
}

// registry runs a Service Center with two services until the test ends, and
// returns its address.
func registry(t *testing.T) string {
	t.Helper()
	r := servicecenter.New(servicecenter.Config{Prompt: true, KeepAlive: true})
	for called, endpoint := range map[string]string{"cart": "rest://10.0.0.1:8080", "users": "grpc://10.0.0.2:9090"} {
		id := r.Register(servicecenter.Service{Environment: "production", App: "shop", Name: called})
		r.RegisterInstance(id, servicecenter.Instance{HostName: "vm-1", Endpoints: []string{endpoint}})
	}
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.URL()
}

// await asks until the answer is good.
func await(t *testing.T, url string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-again.C {
		response, err := request(t, url)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v", url, response, err)
		}
	}
}

// awaitLive waits until every source is shown as live. It is ready as soon as what they
// have listed is served, which may be a moment earlier.
func awaitLive(t *testing.T, url string) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, "every source to be live", func() error {
		var sources []admin.Source
		get(t, url+"/api/v1/sources", &sources)
		for _, s := range sources {
			if s.State != "live" {
				return fmt.Errorf("%s is %s: %s", s.Name, s.State, s.Reason)
			}
		}
		return nil
	})
}

func get(t *testing.T, url string, v any) {
	t.Helper()
	response, err := request(t, url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}

func request(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true // leaves no goroutine behind
	return http.DefaultClient.Do(r)
}

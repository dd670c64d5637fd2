package kubeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// untilFile has the program of the test be a credential plugin, which answers once there is
// such a file.
const untilFile = "ISTHMUS_TEST_PLUGIN_UNTIL"

func TestMain(m *testing.M) {
	if file := os.Getenv(untilFile); file != "" {
		for {
			if _, err := os.Stat(file); err == nil {
				_, _ = os.Stdout.WriteString(`{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "good"}}`)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	goleak.VerifyTestMain(m)
}

// withPlugin is an API server that a plugin has the token for. The plugin answers once
// release was called.
func withPlugin(t *testing.T) (target *rest.Config, release func()) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answer")
	release = func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { release(); server.Close() })
	return &rest.Config{Host: server.URL, ExecProvider: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Command: program, Env: []clientcmdapi.ExecEnvVar{{Name: untilFile, Value: file}},
	}}, release
}

func get(ctx context.Context, t *testing.T, through http.RoundTripper, url string) (code int, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// A plugin that does not answer is reported, by this transport and by later ones. One
// goroutine waits for it, however many requests there are. Once it answers requests go on.
func TestPluginThatHangsIsReported(t *testing.T) { //nolint:paralleltest // it counts goroutines
	target, release := withPlugin(t)
	plugin := kubeconfig.Plugin{Within: 50 * time.Millisecond}
	for range 3 {
		through, err := plugin.Transport(target)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err := get(t.Context(), t, through, target.Host)
			if err == nil || !strings.Contains(err.Error(), "has not answered within 50ms; end its process") || !strings.Contains(err.Error(), target.ExecProvider.Command) {
				t.Fatalf("the error is %v", err)
			}
		}
	}
	until.NoError(t, time.Millisecond, "one goroutine to wait for the plugin", func() error {
		if waiting := strings.Count(stacks(), "exec.(*Authenticator).getCreds("); waiting != 1 {
			return fmt.Errorf("%d do", waiting)
		}
		return nil
	})
	release()
	through, err := plugin.Transport(target)
	if err != nil {
		t.Fatal(err)
	}
	until.NoError(t, time.Millisecond, "requests to go on", func() error {
		code, err := get(t.Context(), t, through, target.Host)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// A request ends with its context while the plugin runs.
func TestRequestEndsWhileThePluginRuns(t *testing.T) { //nolint:paralleltest // see above
	target, release := withPlugin(t)
	plugin := kubeconfig.Plugin{Within: time.Hour}
	through, err := plugin.Transport(target)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := get(ctx, t, through, target.Host); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if _, err := (kubeconfig.Lease{Namespace: "n", Name: "l"}).UID(ctx, target, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asked for a Lease: %v", err)
		}
		cancel()
	}
	release()
	if code, err := get(t.Context(), t, through, target.Host); err != nil || code != http.StatusOK {
		t.Errorf("the plugin has answered, and it is %d, %v", code, err)
	}
}

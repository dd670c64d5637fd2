package kubernetes_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// untilFile has the program of the test be a credential plugin, which answers once there is
// such a file.
const untilFile = "ISTHMUS_TEST_PLUGIN_UNTIL"

func beCredentialPlugin(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			_, _ = os.Stdout.WriteString(`{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "good"}}`)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A credential plugin that does not answer is what the status says. The source ends all the
// same when it is stopped, and goes on once the plugin answers.
func TestCredentialPluginThatHangsIsReported(t *testing.T) {
	t.Parallel()
	r, stored := newRegistry(false), store.NewMemory(store.Config{})
	at := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8080")}
	r.Set(sourcetest.Services{"a.example": {Endpoints: at}, "c.example": {Endpoints: at}})
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "api.test"}) },
		Transport: r.api, FlushInterval: -1,
	})
	defer server.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answer")
	release := func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	defer release()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := kubernetes.Kind().New().(*kubernetes.Config) //nolint:forcetypeassert // the kind's own
	src := kubernetes.New(*c, source.Env{Instance: "test", Name: "k8s", Log: log})
	src.PluginWithin(50 * time.Millisecond)
	src.Reach(&rest.Config{Host: server.URL, ExecProvider: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Command: program, Env: []clientcmdapi.ExecEnvVar{{Name: untilFile, Value: file}},
	}})
	s := supervise.New("k8s", src, stored, supervise.Config{Kind: "kubernetes", Log: log, MaxBackoff: 100 * time.Millisecond})
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Run(ctx) }()
		return func() { cancel(); <-ended }
	}
	await := func(what string, is func(source.Status) bool) {
		t.Helper()
		until.NoError(t, 10*time.Millisecond, what, func() error {
			if now := s.Status(); !is(now) {
				return fmt.Errorf("it is %s: %s", now.State, now.Reason)
			}
			return nil
		})
	}
	stop := run()
	await("the plugin is named", func(s source.Status) bool {
		return s.State != source.StateLive && strings.Contains(s.Reason, "the credential plugin "+`"`+program) && strings.Contains(s.Reason, "end its process")
	})
	stop()
	stop = run()
	release()
	await("it is live", func(s source.Status) bool { return s.State == source.StateLive })
	stop()
}

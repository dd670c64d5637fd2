// Package additions shows that a registry, and an output, is one folder and one
// row of a table: these two work whole, and no other file knows of them.
package additions_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/additions/hostlist"
	"github.com/isthmus-mesh/isthmus/test/additions/tally"
	"github.com/isthmus-mesh/isthmus/test/testkit/instance"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const interval = 10 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kinds are those of Isthmus and two more rows.
func kinds() config.Kinds {
	k := config.Known()
	k.Sources = append(k.Sources, hostlist.Kind())
	k.Outputs = append(k.Outputs, tally.OutputKind())
	return k
}

// load reads a configuration from a folder of its own.
func load(t *testing.T, text string) (c *config.Config, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = kinds().Load(file)
	return c, dir, err
}

// list is a registry whose lines a test may change, or take away, and that may
// stop answering.
type list struct {
	lines atomic.Pointer[string]
	mute  atomic.Bool
}

func (l *list) become(lines string) { l.lines.Store(&lines) }

func (l *list) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.mute.Load() {
		<-r.Context().Done()
		return
	}
	if lines := l.lines.Load(); lines != nil {
		_, _ = io.WriteString(w, *lines)
		return
	}
	http.Error(w, "out of order", http.StatusInternalServerError)
}

func TestASourceAndAnOutputAreARowEach(t *testing.T) {
	t.Parallel()
	registry := &list{}
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	registry.become("cart.example 10.0.0.1:80\ncart.example 10.0.0.2:80\nusers.example 10.0.1.1:80\n")

	c, dir, err := load(t, fmt.Sprintf(
		"sources:\n- {name: hosts, hostlist: {url: %q, poll: 10ms, timeout: 1s}}\noutputs: {tally: {path: tally.txt}}\nadmin: {listen: '127.0.0.1:0'}\n", server.URL))
	if err != nil {
		t.Fatal(err)
	}
	admin := run(t, c)
	counts := func(want string) {
		t.Helper()
		until.NoError(t, interval, want, func() error {
			if text, _ := os.ReadFile(filepath.Join(dir, "tally.txt")); string(text) != want+"\n" {
				return fmt.Errorf("the tally is %q", text)
			}
			return nil
		})
	}
	counts("2 services, 3 endpoints")

	registry.become("cart.example 10.0.0.1:80\ncart.example 10.0.0.2:80\ncart.example 10.0.0.3:80\nusers.example nowhere\n")
	counts("2 services, 4 endpoints") // the line that does not pass keeps its service
	says(t, admin+"/api/v1/sources", `"kind": "hostlist"`, `"where": "line 4"`)

	registry.lines.Store(nil)
	says(t, admin+"/api/v1/sources", `"state": "stale"`, "500 Internal Server Error")
	counts("2 services, 4 endpoints") // an error is never an empty list
	registry.mute.Store(true)
	says(t, admin+"/api/v1/sources", `"state": "stale"`, "deadline exceeded") // nor is silence
	counts("2 services, 4 endpoints")
	says(t, admin+"/metrics", "isthmus_tally_writes_total ", `isthmus_source_up{kind="hostlist",source="hosts"} 0`)
}

// What a row brings with it is validated, named and positioned like anything else.
func TestAdditionsAreValidatedLikeTheRest(t *testing.T) {
	t.Parallel()
	_, _, err := load(t, "sources:\n- name: hosts\n  hostlist:\n    url: nowhere\n    poll: 0s\n    pol: 1s\n- {name: b, host: {}}\noutputs:\n  tally: {}\n")
	if err == nil {
		t.Fatal("it is valid")
	}
	for _, want := range []string{
		`isthmus.yaml:4: sources[0].hostlist.url: "nowhere" is not a URL`,
		"isthmus.yaml:5: sources[0].hostlist.poll: must be more than 0",
		"isthmus.yaml:6: sources[0].hostlist.pol: unknown key; did you mean poll? known here: url, poll, timeout",
		"isthmus.yaml:7: sources[1].host: unknown key; did you mean hostlist? known here: name, required, hold, only, localAddresses, network, owns, file, servicecenter, kubernetes, mcp, xds, azure, hostlist",
		"isthmus.yaml:9: outputs.tally.path: missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
}

// run runs an Isthmus until the test ends, and returns where its admin API is.
func run(t *testing.T, c *config.Config) (admin string) {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return "http://" + instance.Run(t, c).AdminAddr().String()
}

// says waits until a page of the admin API has all of some texts.
func says(t *testing.T, url string, texts ...string) {
	t.Helper()
	until.NoError(t, interval, url, func() error {
		page := get(t, url)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				return fmt.Errorf("it does not say %q:\n%s", text, page)
			}
		}
		return nil
	})
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

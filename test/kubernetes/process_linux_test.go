package kubernetes_test

import (
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
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// buildIsthmus builds the program for a test that runs separately: those alone run it.
func buildIsthmus(dir string) error {
	if os.Getenv(inNamespace) == "" {
		return nil
	}
	programs.Isthmus = filepath.Join(dir, "isthmus")
	return product.Build(programs.Repository, programs.Isthmus)
}

// isthmus is the program, in a process that is ended and started again.
type isthmus struct {
	*cluster.Process
	tb         testing.TB
	xds, admin string // addresses
	said       int    // length of what it said before it was started
}

// serveIsthmus runs an Isthmus with a configuration in a folder, until the test ends.
func serveIsthmus(tb testing.TB, dir, text string) *isthmus {
	tb.Helper()
	i := newIsthmus(tb, dir, text)
	i.start()
	return i
}

// newIsthmus describes one that is not started yet.
func newIsthmus(tb testing.TB, dir, text string) *isthmus {
	tb.Helper()
	file := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(file, []byte(text+"\nlog: {format: text}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	i := &isthmus{tb: tb, Process: cluster.NewProcess(dir, "isthmus", programs.Isthmus, "serve", "--config", file)}
	tb.Cleanup(func() {
		i.Kill()
		if tb.Failed() {
			tb.Logf("--- log of Isthmus\n%.4000s", i.Log())
		}
	})
	return i
}

// start starts it, again if it has ended, and waits until it is ready.
func (i *isthmus) start() {
	i.tb.Helper()
	ctx, cancel := context.WithTimeout(i.tb.Context(), until.Patience)
	defer cancel()
	i.said = len(i.Log())
	if err := i.Start(ctx, i.ready); err != nil {
		i.tb.Fatal(err)
	}
}

var servingLine = regexp.MustCompile(`msg=serving .*xds=(\S+) .*admin=(\S+)`)

func (i *isthmus) ready(ctx context.Context) error {
	found := servingLine.FindStringSubmatch(i.Log()[i.said:])
	if found == nil {
		return errors.New("it does not serve yet")
	}
	i.xds, i.admin = found[1], found[2]
	return get(ctx, i, "/readyz", func(*http.Response) error { return nil })
}

// ask asks the admin API.
func ask(ctx context.Context, i *isthmus, path string, into any) error {
	return get(ctx, i, path, func(r *http.Response) error { return json.NewDecoder(r.Body).Decode(into) })
}

func get(ctx context.Context, i *isthmus, path string, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.admin+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return read(response)
}

package isthmus_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
)

// Whatever there is to do on the newcomer's page is done by a test of one of the modules.
func TestEveryPartOfGettingStartedIsFollowed(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, module := range []string{"envoy", "grpc", "istio", "testkit/guide"} {
		files, err := filepath.Glob("test/" + module + "/started*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("test/%s does not follow the page: %v", module, err)
		}
		for _, file := range files {
			tests.WriteString(read(t, file))
		}
	}
	page := guide.Read(t, "docs/getting-started.md")
	for _, title := range page.Titles() {
		if !strings.Contains(tests.String(), `"`+title+`"`) {
			t.Errorf("no test follows %q of %s", title, page.Path)
		}
	}
	for _, client := range []string{"Envoy", "Go", "Python", "Java", "Node", "Istio", "Mutual TLS"} {
		if !slices.Contains(page.Titles(), client) {
			t.Errorf("%s has no call through %s: %q", page.Path, client, page.Titles())
		}
	}
}

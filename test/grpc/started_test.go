package grpc_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
)

// TestNewcomerCallsByGRPC does what docs/getting-started.md says of each language, from
// an empty folder on: what the page fetches comes by the tools that it names, whose
// caches have it if it was fetched before.
func TestNewcomerCallsByGRPC(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		f := fetches[impl.Language]
		n := guide.Begin(t, filepath.Join("..", "..", "docs", "getting-started.md"),
			map[string]string{"isthmus": program}, func() string { return freePort(t) })
		n.Env = append(n.Env, goEnv(t)...)
		n.FetchEnv = append(os.Environ(), "npm_config_prefer_offline=true")
		f.mustBePinned(t, n.Step(f.title))
		n.Follow("gRPC")
		n.Follow(f.title)
	})
}

// fetched is what the page fetches for a language, of the versions that the tests' own
// clients have.
type fetched struct {
	title string
	pins  string         // file of this module
	pin   *regexp.Regexp // of a name, which may be empty, and a version in it
	as    string         // how the page has a pin
}

var fetches = map[string]fetched{
	"go":     {"Go", "go.mod", regexp.MustCompile(`(google\.golang\.org/grpc) v(\S+)`), "$1/xds@v$2"},
	"python": {"Python", "clients/python/requirements.txt", regexp.MustCompile(`(grpcio)==(\S+)`), "$1==$2"},
	"java":   {"Java", "clients/java/pom.xml", regexp.MustCompile(`<(grpc)\.version>(.*?)<`), "<version>$2</version>"},
	"node":   {"Node", "clients/node/package.json", regexp.MustCompile(`"(@grpc/\S+)": "(.*?)"`), "$1@$2"},
}

// mustBePinned is that the page names the versions that are tested.
func (f fetched) mustBePinned(t *testing.T, s guide.Step) {
	t.Helper()
	pins, err := os.ReadFile(filepath.FromSlash(f.pins))
	if err != nil {
		t.Fatal(err)
	}
	found := f.pin.FindAllSubmatchIndex(pins, -1)
	if len(found) == 0 {
		t.Fatalf("%s has no pin", f.pins)
	}
	for _, at := range found {
		if want := string(f.pin.Expand(nil, []byte(f.as), pins, at)); !strings.Contains(fmt.Sprint(s.Blocks), want) {
			t.Errorf("%q of the page does not have %q, which is tested", s.Title, want)
		}
	}
}

// goEnv is where Go has what it has fetched and built: a newcomer has a home of his own.
func goEnv(t *testing.T) (env []string) {
	t.Helper()
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

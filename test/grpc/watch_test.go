package grpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// TestPythonWaitsForARequiredSource starts Isthmus cold, while a required registry hangs.
func TestPythonWaitsForARequiredSource(t *testing.T) {
	t.Parallel()
	registry := newHangingRegistry(t)
	isthmus := newWatched(t, registry, true)
	isthmus.Start()
	copied := watchByPython(t, isthmus.Watch)

	// The reason comes with the end of the first request to the registry.
	copied.Await(`# source legacy is not listed yet; its records are missing: .* does not answer .*`)
	if text := copied.String(); strings.Contains(text, "# snapshot") || len(copied.Services()) > 0 {
		t.Errorf("before the required source is listed:\n%s", text)
	}
	registry.Repair()
	copied.Await(`# snapshot; records: 2; not listed yet: none`)
	copied.AwaitServices("files/shop/reviews", "legacy/istio-system/cart")
}

// TestPythonGoesOnWithoutAnOptionalSource starts Isthmus cold, while an optional registry hangs.
// Then the stream breaks, and then Isthmus.
func TestPythonGoesOnWithoutAnOptionalSource(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Second // of Isthmus for sources that are not required
	registry := newHangingRegistry(t)
	isthmus := newWatched(t, registry, false)
	began := time.Now()
	isthmus.Start()
	path := newRelay(t, isthmus.Watch)
	copied := watchByPython(t, path.Address)

	copied.Await(`# snapshot; records: 1; not listed yet: legacy`)
	if waited := time.Since(began); waited < wait {
		t.Errorf("the snapshot came after %s; Isthmus waits %s for an optional source", waited, wait)
	}
	copied.AwaitServices("files/shop/reviews")
	registry.Repair()
	copied.Await(`# source legacy is listed`)
	copied.AwaitServices("files/shop/reviews", "legacy/istio-system/cart")

	path.Cut()
	copied.Await(`# UNAVAILABLE: .*`)
	isthmus.Write("details.example.com")
	copied.AwaitServices("files/shop/details", "files/shop/reviews", "legacy/istio-system/cart")
	if text := copied.String(); strings.Contains(text, "# reset") || strings.Count(text, "# snapshot") != 1 {
		t.Errorf("a watch that goes on has no second snapshot:\n%s", text)
	}

	isthmus.Kill()
	isthmus.Remove(reviews)
	isthmus.Write(ratings)
	isthmus.Start()
	copied.Await(`# reset: .+`)
	copied.AwaitServices("files/shop/details", "files/shop/ratings", "legacy/istio-system/cart")
	if text := copied.String(); strings.Count(text, "Service legacy/istio-system/cart") != 1 {
		t.Errorf("a service that is the same after the restart was printed again:\n%s", text)
	}
}

// newHangingRegistry returns a registry with one service that accepts connections and answers
// no request until it is repaired.
func newHangingRegistry(t *testing.T) *servicecenter.Server {
	t.Helper()
	r := servicecenter.New(servicecenter.Config{Prompt: true, KeepAlive: true})
	id := r.Register(servicecenter.Service{App: "shop", Name: "cart"})
	r.RegisterInstance(id, servicecenter.Instance{HostName: "vm-1", Endpoints: []string{"rest://192.0.2.1:8080"}})
	r.Inject(servicecenter.Any, servicecenter.Hang(), 0)
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// newWatched describes an Isthmus with an output watch. It reads a registry besides its folder.
func newWatched(t *testing.T, registry *servicecenter.Server, required bool) *isthmus {
	t.Helper()
	i := newIsthmus(t)
	i.Watch = freeAddress(t)
	i.sources = fmt.Sprintf("- name: legacy\n  required: %t\n  servicecenter: {addresses: [%q], timeout: 2s}\n", required, registry.URL())
	i.configure("")
	i.Write(reviews)
	return i
}

// copied is a run of examples/watch-python and its output.
type copied struct {
	*process
	*transcript.Log
}

// watchByPython does what the README of the example says, and watches services at an address.
func watchByPython(t *testing.T, address string) copied {
	t.Helper()
	const example = "examples/watch-python"
	root, dir := filepath.Join("..", ".."), t.TempDir()
	for _, part := range []string{example, "api"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	install, generate, run := commandsOf(t, filepath.Join(root, example, "README.md"))
	mustInstallThePins(t, install)
	implementation := slices.IndexFunc(implementations, func(i clients.Implementation) bool { return i.Language == "python" })
	path := "PATH=" + filepath.Join(implementations[implementation].Dir, "venv", "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	shell := exec.CommandContext(t.Context(), "sh", "-euc", generate)
	shell.Dir, shell.Env = filepath.Join(dir, example), append(os.Environ(), path)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", generate, err, out)
	}
	c := copied{Log: &transcript.Log{}}
	command := fmt.Sprintf("cd %q && exec %s --address %s", shell.Dir, run, address)
	c.process, _ = startProcess(t, "watch.py", c.Log, []string{path}, "sh", "-euc", command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("--- output of watch.py\n%s", c.String())
		}
	})
	return c
}

// commandsOf returns the three commands of the README.
func commandsOf(t *testing.T, readme string) (install, generate, run string) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sh\n")
	block, _, _ = strings.Cut(block, "```\n")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) != 3 {
		t.Fatalf("%s has %d commands, not 3: change this test with it", readme, len(lines))
	}
	return lines[0], lines[1], lines[2]
}

// mustInstallThePins fails unless a pip command installs the versions of this module's client.
func mustInstallThePins(t *testing.T, install string) {
	t.Helper()
	pins, err := os.ReadFile(filepath.Join("clients", "python", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	arguments, ok := strings.CutPrefix(install, "pip install ")
	if !ok {
		t.Fatalf("%q is not the installation", install)
	}
	for pin := range strings.FieldsSeq(arguments) {
		if !slices.Contains(strings.Fields(string(pins)), pin) {
			t.Errorf("the README installs %s; tested is one of\n%s", pin, pins)
		}
	}
}

// Await waits until the program has printed a line.
func (c copied) Await(line string) {
	c.t.Helper()
	pattern := regexp.MustCompile("(?m)^" + line + "$")
	c.await(fmt.Sprintf("a line %q", line), func() error {
		if text := c.String(); !pattern.MatchString(text) {
			return fmt.Errorf("it has printed\n%s", text)
		}
		return nil
	})
}

// AwaitServices waits until the copy has these services.
func (c copied) AwaitServices(want ...string) {
	c.t.Helper()
	c.await(fmt.Sprintf("a copy of %q", want), func() error {
		if got := c.Services(); !slices.Equal(got, want) {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func (c copied) await(what string, check func() error) {
	c.t.Helper()
	await(c.t, what, func() error {
		if c.Gone() {
			c.t.Fatalf("watch.py has ended: %v", c.err)
		}
		return check()
	})
}

// Services returns the services that the printed changes leave.
func (c copied) Services() (names []string) {
	for line := range strings.Lines(c.String()) {
		change, name, _ := strings.Cut(strings.TrimSpace(line), " Service ")
		name, _, _ = strings.Cut(name, " ")
		at, found := slices.BinarySearch(names, name)
		switch {
		case change == "+" && !found:
			names = slices.Insert(names, at, name)
		case change == "-" && found:
			names = slices.Delete(names, at, at+1)
		case change == "+" || change == "-" || change == "~" && !found:
			c.t.Errorf("%q does not follow from the lines before it", line)
		}
	}
	return names
}

package demo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

var folder = regexp.MustCompile(`config +(\S+)/isthmus\.yaml`)

func TestTourIsObserved(t *testing.T) {
	t.Parallel()
	for _, registry := range Registries() {
		t.Run(registry, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 4*until.Patience)
			defer cancel()
			// With a pause it would not end.
			if err := Run(ctx, Config{Version: "test", Out: &out, Once: true, Registry: registry, Deadline: until.Patience, pause: time.Hour}); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			steps := map[string]int{"files": 9, "servicecenter": 5}[registry] // and one with an Envoy
			if n := strings.Count(out.String(), "observed after "); n != steps && n != steps+1 {
				t.Errorf("%d steps of %d were observed:\n%s", n, steps, out.String())
			}
			if registry == "files" && strings.Contains(out.String(), noEnvoy) != (steps == strings.Count(out.String(), "observed after ")) {
				t.Errorf("it does not say that there is no Envoy:\n%s", out.String())
			}
			mustHaveGone(t, out.String())
		})
	}
}

// Whatever is not observed ends the tour, and the error names the step and what
// was seen instead. Here the registry does not get what the step writes.
func TestTourEndsAtWhatIsNotObserved(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		nth        int // write of the file is lost
		step       int
		want       []string
	}{
		{"an addition", "reviews.yaml", 2, 2, []string{"(add an instance)", "not within 4s", "reviews-3"}},
		{"a removal", "payments.yaml", 2, 3, []string{"(kill an instance)", "not within 4s", "Isthmus still has payments-2"}},
		{"a mistake", "cart.yaml", 2, 4, []string{"(break a file)", "not within 4s", "rejects [], not cart.yaml:12"}},
		{"a correction", "cart.yaml", 3, 5, []string{"(fix the file)", "not within 4s", "cart-3"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			writes := 0
			limit := func(step int) time.Duration {
				if step == test.step {
					return 4 * time.Second
				}
				return until.Patience
			}
			err := Run(t.Context(), Config{Out: &out, Once: true, limit: limit, write: func(path string, text []byte, at time.Time) error {
				if filepath.Base(path) == test.file {
					if writes++; writes == test.nth {
						return nil
					}
				}
				return replaceFile(path, text, at)
			}})
			if err == nil {
				t.Fatalf("the tour went on:\n%s", out.String())
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if !strings.Contains(out.String(), "NOT OBSERVED") {
				t.Errorf("the output does not say so:\n%s", out.String())
			}
			mustHaveGone(t, out.String())
		})
	}
}

// A call that fails where none may is not passed over: here a whole service is
// taken out of the registry while an instance is to be added to it.
func TestTourEndsAtCallsThatFail(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), Config{Out: io.Discard, Once: true, Deadline: until.Patience, write: func(path string, text []byte, at time.Time) error {
		if strings.Contains(string(text), "reviews-3") {
			return os.Remove(path)
		}
		return replaceFile(path, text, at)
	}})
	if err == nil || !strings.Contains(err.Error(), "step 2 of ") || !strings.Contains(err.Error(), "calls failed") {
		t.Errorf("error %v", err)
	}
}

func TestInterruptedTourIsNotObserved(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := &transcript{}
	out.when("Step 3 of ", cancel)
	err := Run(ctx, Config{Out: out, Once: true, Deadline: until.Patience})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v", err)
	}
	mustHaveGone(t, out.String())
}

// After the tour the folder is the user's. What is changed in it is shown, on a
// terminal and elsewhere, until the end.
func TestFolderMayBeEdited(t *testing.T) {
	t.Parallel()
	for name, terminal := range map[string]bool{"terminal": true, "file": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*until.Patience)
			defer cancel()
			out := &transcript{}
			out.when("Now it is yours", func() { withoutEndpoint(t, out, "cart-1") })
			out.when("cart-1 left ", cancel)
			if err := Run(ctx, Config{Out: out, Terminal: terminal, Deadline: until.Patience, pause: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`cart-1 left \d+ ms after the registry changed`).MatchString(out.String()) {
				t.Errorf("the change is not shown:\n%s", out.String())
			}
			if strings.Contains(out.String(), "\x1b[") != terminal {
				t.Errorf("terminal %v, but the output is\n%s", terminal, out.String())
			}
			mustHaveGone(t, out.String())
		})
	}
}

// A Service Center is the user's, too: here the instance is removed that the
// demo suggests.
func TestCenterMayBeChanged(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*until.Patience)
	defer cancel()
	out := &transcript{}
	out.when("Ctrl-C ends the demo", func() { follow(t, out.String()) })
	out.when("cart-1 left ", cancel)
	if err := Run(ctx, Config{Out: out, Registry: "servicecenter", Deadline: until.Patience, pause: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`cart-1 left \d+ ms after the registry changed`).MatchString(out.String()) {
		t.Errorf("the change is not shown:\n%s", out.String())
	}
}

// follow does what the output says can be done with curl.
func follow(t *testing.T, out string) {
	t.Helper()
	hint := regexp.MustCompile(`curl -X (\w+) (\S+)`).FindStringSubmatch(out)
	if hint == nil {
		t.Fatalf("the output suggests nothing:\n%s", out)
	}
	if status := ask(t, hint[1], hint[2], ""); status != http.StatusOK {
		t.Errorf("%s is answered %d", hint[0], status)
	}
}

// withoutEndpoint takes an endpoint out of its file, as an editor would.
func withoutEndpoint(t *testing.T, out *transcript, name string) {
	t.Helper()
	path := filepath.Join(folder.FindStringSubmatch(out.String())[1], "registry", "cart.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	rest := regexp.MustCompile(`(?m)^.*instance: `+name+`}.*\n`).ReplaceAll(text, nil)
	if err := os.WriteFile(path, rest, 0o600); err != nil {
		t.Error(err)
	}
}

func mustHaveGone(t *testing.T, out string) {
	t.Helper()
	dir := folder.FindStringSubmatch(out)
	if dir == nil {
		t.Fatalf("the output names no folder:\n%s", out)
	}
	if _, err := os.Stat(dir[1]); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir[1], err)
	}
}

// transcript keeps what is written, and acts when something is.
type transcript struct {
	mu    sync.Mutex
	text  strings.Builder
	until []cue
}

type cue struct {
	text string
	act  func()
}

// when has act called once text was written. It belongs before the writing.
func (s *transcript) when(text string, act func()) { s.until = append(s.until, cue{text, act}) }

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.text.Write(b)
	all := s.text.String()
	s.mu.Unlock()
	for len(s.until) > 0 && strings.Contains(all, s.until[0].text) {
		act := s.until[0].act
		s.until = s.until[1:]
		act()
	}
	return len(b), nil
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

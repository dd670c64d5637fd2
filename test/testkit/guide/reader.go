package guide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Reader follows a page: by a shell in a folder of its own, in which some programs
// are those of the test.
type Reader struct {
	T    testing.TB
	Dir  string
	Env  []string // its variables; they may be added to
	Last string   // what the last commands printed

	// FetchEnv are the variables for blocks of "sh once". Without any the reader has
	// already what they fetch.
	FetchEnv []string

	terminals []*terminal
}

// NewReader returns a reader who has programs, by name, and variables beside those
// of the test.
func NewReader(t testing.TB, programs map[string]string, env ...string) *Reader {
	t.Helper()
	r := &Reader{T: t, Dir: t.TempDir()}
	bin := filepath.Join(r.Dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range programs {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	r.Env = slices.Concat(os.Environ(), []string{path, "HOME=" + r.Dir}, env)
	t.Cleanup(r.closeTerminals)
	return r
}

// Try does what a block says, and returns what was printed.
func (r *Reader) Try(text string) (string, error) { return r.tryIn(r.Env, text) }

func (r *Reader) tryIn(env []string, text string) (string, error) {
	ctx, cancel := context.WithTimeout(r.T.Context(), until.Patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-euc", text)
	shell.Dir, shell.Env, shell.SysProcAttr = r.Dir, env, leash()
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // with all that it runs
	out, err := shell.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), fmt.Errorf("%s\n%w\n%s%s", text, err, out, exit.Stderr)
	}
	return string(out), err
}

// Follow does the blocks of a step, one after the other. What is followed by what it
// prints is done until it does: that takes as long as the servers take.
func (r *Reader) Follow(s Step) {
	r.T.Helper()
	for i, b := range s.Blocks {
		switch b.Language {
		case "sh":
			var expected []string
			if i+1 < len(s.Blocks) && s.Blocks[i+1].Language == "text" {
				expected = s.Blocks[i+1].Lines()
			}
			r.do(s.Title, b.Text, expected)
		case "sh terminal":
			r.open(b.Text)
		case "sh once":
			if len(r.FetchEnv) > 0 {
				r.fetch(s.Title, b.Text)
			}
		case "text":
			if i == 0 || s.Blocks[i-1].Language != "sh" {
				r.T.Fatalf("%q: nothing prints block %d", s.Title, i+1)
			}
		case "":
			r.T.Fatalf("%q: block %d is of no language, so nobody knows what to do with it", s.Title, i+1)
		default:
			r.Write(b.File(), b.Text)
		}
	}
}

func (r *Reader) do(title, text string, expected []string) {
	r.T.Helper()
	until.NoError(r.T, 20*time.Millisecond, fmt.Sprintf("%q of the guide to print %q", title, expected), func() (err error) {
		r.mustRun()
		if r.Last, err = r.Try(text); err != nil && len(expected) == 0 {
			r.T.Fatalf("%q of the guide: %v", title, err)
		}
		if err != nil {
			return err
		}
		return has(r.Last, expected)
	})
}

// has is that a text has lines, in order, or some that begin with them. There may be
// others between.
func has(text string, lines []string) error {
	rest := Block{Text: text}.Lines()
	for _, line := range lines {
		for len(rest) > 0 && !strings.HasPrefix(rest[0], line) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fmt.Errorf("%q is not, or not in its place, in\n%s", line, text)
		}
		rest = rest[1:]
	}
	return nil
}

// Write writes a file of the page.
func (r *Reader) Write(name, text string) {
	r.T.Helper()
	if !filepath.IsLocal(name) || strings.Contains(name, " ") {
		r.T.Fatalf("%q is no name of a file", name)
	}
	file := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.T.Fatal(err)
	}
}

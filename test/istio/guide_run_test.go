package istio_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// operator follows the guide: by a shell in a folder of its own, in which
// isthmus and kubectl are the programs under test.
type operator struct {
	t    *testing.T
	dir  string
	env  []string
	last string // what the last commands printed
}

func newOperator(t *testing.T, kubeconfig, admin string) *operator {
	t.Helper()
	o := &operator{t: t, dir: t.TempDir()}
	bin := filepath.Join(o.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"isthmus": program, "kubectl": programs.Kubectl()} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	o.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig, "HOME="+o.dir, "ISTHMUS_ADMIN=http://"+admin)
	t.Cleanup(o.stopIsthmus)
	return o
}

// try does what a block says, and returns what was printed.
func (o *operator) try(text string) (string, error) {
	shell := exec.CommandContext(o.t.Context(), "sh", "-euc", text)
	shell.Dir, shell.Env = o.dir, o.env
	out, err := shell.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), fmt.Errorf("%s\n%w\n%s%s", text, err, out, exit.Stderr)
	}
	return string(out), err
}

// follow does the blocks of a step, one after the other. What is followed by what it
// prints is done until it does: that takes as long as the servers take.
func (o *operator) follow(s step) {
	o.t.Helper()
	for i, b := range s.blocks {
		switch b.language {
		case "yaml":
			o.write(b.file(), b.text)
		case "sh":
			var expected []string
			if i+1 < len(s.blocks) && s.blocks[i+1].language == "text" {
				expected = s.blocks[i+1].lines()
			}
			o.do(s.title, b.text, expected)
		case "text":
			if i == 0 || s.blocks[i-1].language != "sh" {
				o.t.Fatalf("%s, %q: nothing prints block %d", guide, s.title, i+1)
			}
		default:
			o.t.Fatalf("%s, %q: block %d is %q, which nobody can follow", guide, s.title, i+1, b.language)
		}
	}
}

func (o *operator) do(title, text string, expected []string) {
	o.t.Helper()
	await(o.t, fmt.Sprintf("%q of the guide to print %q", title, expected), func() (err error) {
		if o.last, err = o.try(text); err != nil && len(expected) == 0 {
			o.t.Fatalf("%q of the guide: %v", title, err)
		}
		if err != nil {
			return err
		}
		return has(o.last, expected)
	})
}

// has is that a text has lines, in order, or some that begin with them. There may be
// others between.
func has(text string, lines []string) error {
	rest := block{text: text}.lines()
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

func (o *operator) write(name, text string) {
	o.t.Helper()
	if filepath.Base(name) != name || strings.Contains(name, " ") {
		o.t.Fatalf("%s: %q is no name of a file", guide, name)
	}
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// isthmus is the process that the guide has started; nil if there is none.
func (o *operator) isthmus() *os.Process {
	text, err := os.ReadFile(filepath.Join(o.dir, "isthmus.pid"))
	if err != nil {
		return nil
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(id, 0) != nil || isZombie(id) {
		return nil
	}
	process, err := os.FindProcess(id)
	if err != nil {
		return nil
	}
	return process
}

// isZombie reports whether a process has ended, and nobody has asked how: it is a
// child of a shell that has ended before, and not every machine has an init that asks.
func isZombie(id int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func (o *operator) stopIsthmus() {
	if p := o.isthmus(); p != nil {
		_ = p.Kill()
	}
	if o.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(o.dir, "isthmus.log"))
		o.t.Logf("--- log of isthmus\n%s", log)
	}
}

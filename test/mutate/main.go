// Command mutate breaks one promise of a package doc after the other, and runs the tests that
// have to notice it. Each row of its table replaces one piece of code: see mutations.go. The
// checkout is not touched: the go command gets the changed file as an overlay.
//
// A row is killed if a test of its package fails, or else a test of any package that depends on
// the file. The command fails if a mutation survives both, does not compile, or hangs.
//
// To add a row, choose a promise and the smallest change of the code that breaks it. The text
// must occur once in the file. Name the package with the fastest tests that fail, and the tests
// with run if all of them take more than ten seconds, or if others wait for ever. Then run
// go run ./test/mutate -row FILE.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const module = "github.com/isthmus-mesh/isthmus/"

// row is one mutation: text in a file of the module is replaced.
type row struct {
	file, text, replacement string
	killer                  string // the package with the tests that fail
	run                     string // only these tests of it; all if empty
	promise                 string
}

func main() {
	only := flag.String("row", "", "apply the rows that have a match of this regular expression in their file, package or promise")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if err := check("."); err != nil {
		return err
	}
	tests, err := listTests()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began, applied, left := time.Now(), 0, []string(nil)
	for _, r := range rows {
		if !wanted.MatchString(r.file + " " + r.killer + " " + r.promise) {
			continue
		}
		start := time.Now()
		outcome, output := tests.try(r, dir)
		line := fmt.Sprintf("%-12s %5.1fs  %s: %s", outcome, time.Since(start).Seconds(), r.place("."), r.promise)
		fmt.Println(line)
		if applied++; !strings.HasPrefix(outcome, killed) {
			fmt.Println(output)
			left = append(left, line)
		}
	}
	fmt.Printf("%d of %d mutations were killed, in %s\n", applied-len(left), applied, time.Since(began).Round(time.Second))
	if len(left) > 0 {
		return fmt.Errorf("not killed:\n%s", strings.Join(left, "\n"))
	}
	return nil
}

// check reports the rows that do not apply to the module in a folder.
func check(root string) error {
	var errs []error
	for _, r := range rows {
		text, err := os.ReadFile(filepath.Join(root, r.file))
		if n := strings.Count(string(text), r.text); err == nil && n != 1 {
			err = fmt.Errorf("%s has this text %d times and not once; correct the row in mutations.go:\n%s", r.file, n, r.text)
		}
		if err == nil && r.text == r.replacement {
			err = fmt.Errorf("%s: the row replaces nothing: %s", r.file, r.promise)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// place returns the file of a row with the line of its text.
func (r row) place(root string) string {
	text, _ := os.ReadFile(filepath.Join(root, r.file))
	before, _, _ := strings.Cut(string(text), r.text)
	return fmt.Sprintf("%s:%d", r.file, 1+strings.Count(before, "\n"))
}

// The outcomes of a row.
const (
	killed   = "ok"
	killedBy = "ok by the rest: " // and the packages
	survived = "SURVIVED"
	hung     = "HANGS"
	invalid  = "DOES NOT RUN"
)

// tests are the packages that the tests of a package are built from.
type tests map[string][]string

func listTests() (tests, error) {
	list := exec.Command("go", "list", "-test", "-f", `{{.ImportPath}}|{{join .Deps "|"}}`, "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	of := tests{}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if name, is := strings.CutSuffix(parts[0], ".test"); is {
			for i := range parts {
				parts[i], _, _ = strings.Cut(parts[i], " ") // a package is built anew for some tests
			}
			of["."+strings.TrimPrefix(name, strings.TrimSuffix(module, "/"))] = parts[1:]
		}
	}
	return of, nil
}

// try applies a row, and returns its outcome with the output of the tests.
func (t tests) try(r row, dir string) (outcome, output string) {
	overlay, err := r.overlay(dir)
	if err != nil {
		return invalid, err.Error()
	}
	if outcome, output = t.run(overlay, "3m", r.run, r.killer); outcome != survived {
		return outcome, output
	}
	var rest []string
	for name, of := range t {
		if slices.Contains(of, module+filepath.Dir(r.file)) && (name != r.killer || r.run != "") {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	if outcome, output = t.run(overlay, "15m", "", rest...); outcome != killed {
		return outcome, output
	}
	var failed []string
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		failed = append(failed, "./"+match[1])
	}
	if unchanged, _ := t.run("", "15m", "", failed...); unchanged != survived {
		return survived, "these tests fail without the mutation, too: " + strings.Join(failed, " ")
	}
	return killedBy + strings.Join(failed, " "), ""
}

// failedTest is in the output of a test that failed, and failure is the line of the go command
// about its package.
var failedTest, failure = regexp.MustCompile(`(?m)^\s*--- FAIL|^panic: |^fatal error: `), regexp.MustCompile(`(?m)^FAIL\t` + regexp.QuoteMeta(module) + `(\S+)`)

// overlay writes the changed file, and the file that has the go command read it instead.
func (r row) overlay(dir string) (path string, err error) {
	original, err := filepath.Abs(r.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, path := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	return path, errors.Join(os.WriteFile(path, replace, 0o600),
		os.WriteFile(changed, []byte(strings.Replace(string(text), r.text, r.replacement, 1)), 0o600))
}

// run runs the tests of packages. Tests that draw do so from one seed, and write no file about
// a failure.
func (t tests) run(overlay, timeout, only string, packages ...string) (outcome, output string) {
	flags := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-timeout", timeout, "-run", only}
	draws := func(name string) bool { return slices.Contains(t[name], "pgregory.net/rapid") }
	drawing := slices.DeleteFunc(slices.Clone(packages), func(name string) bool { return !draws(name) })
	for _, args := range [][]string{drawing, slices.DeleteFunc(packages, draws)} {
		if len(args) == 0 {
			continue
		}
		if draws(args[0]) {
			args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1s")
		}
		out, err := exec.Command("go", append(slices.Clone(flags), args...)...).CombinedOutput()
		output = string(out)
		switch {
		case strings.Contains(output, "panic: test timed out"):
			return hung, output
		case failedTest.MatchString(output):
			return killed, output
		case err != nil, only != "" && strings.Contains(output, "no tests to run"):
			return invalid, output
		}
	}
	return survived, "no test failed"
}

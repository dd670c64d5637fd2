package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const resultsFile = "test/parts/results.txt"

// result is a line of the results: the last one of a part.
type result struct{ part, inputs, commit, outcome, date string }

// tracked is a long part with its inputs as they are now, and its last result.
type tracked struct {
	part
	inputs string
	last   result
}

func (t tracked) counts() bool { return t.last.inputs == t.inputs && t.last.outcome == "ok" }

func (t tracked) String() string {
	state := "stale"
	if t.counts() {
		state = "good"
	}
	if t.last.part == "" {
		return fmt.Sprintf("%-24s never run", t.name)
	}
	return fmt.Sprintf("%-24s %-5s  last: %s %s %s", t.name, state, t.last.outcome, t.last.commit, t.last.date)
}

// job runs the part: with the seeds of the gate, or with fresh ones.
func (t tracked) job(fixed bool) job {
	commands := [][]string{t.command}
	switch {
	case t.module != "" && fixed:
		commands = inModule(t.module, ".", seeds(t.module)...)
		if t.inner != "" {
			commands = append(commands, inModule(t.module, t.inner)...)
		}
	case t.module != "":
		commands = inModule(t.module, "./...")
	case !fixed:
		commands = [][]string{append(slices.Clone(t.command), "SEED=0")}
	}
	return job{t.name, commands, t.inputs}
}

func jobs(all []tracked, fixed bool) (list []job) {
	for _, t := range all {
		list = append(list, t.job(fixed))
	}
	return list
}

func stale(all []tracked, fixed bool) []job {
	return jobs(slices.DeleteFunc(slices.Clone(all), tracked.counts), fixed)
}

// load returns the parts that match a pattern, with their inputs and results.
func load(ctx context.Context, pattern string) ([]tracked, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	files, err := committed(ctx)
	if err != nil {
		return nil, err
	}
	results, err := readResults()
	if err != nil {
		return nil, err
	}
	var all []tracked
	for _, p := range parts {
		if !match.MatchString(p.name) {
			continue
		}
		folders, err := p.folders(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, tracked{p, hash(files, p.own(), folders), results[p.name]})
	}
	return all, nil
}

// own are the folders of which every file is an input.
func (p part) own() []string {
	own := slices.Clone(p.files)
	if p.module != "" {
		own = append(own, path.Join("test", p.module))
	}
	return own
}

// folders are those of the packages that are inputs, by go list.
func (p part) folders(ctx context.Context) ([]string, error) {
	folders, err := dependencies(ctx, ".", p.packages...)
	if err != nil || p.module == "" {
		return folders, err
	}
	others, err := dependencies(ctx, path.Join("test", p.module), "-test", "./...")
	// The program is an input by the packages that the part names, and not by all of its own.
	return append(folders, slices.DeleteFunc(others, func(f string) bool { return !strings.HasPrefix(f, "test/") })...), err
}

// dependencies are the folders of packages of the repository, and of all that they import.
func dependencies(ctx context.Context, module string, arguments ...string) ([]string, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, "go", append([]string{"-C", module, "list", "-deps", "-f", "{{if not .Standard}}{{.Dir}}{{end}}"}, arguments...)...)
	var folders []string
	for line := range strings.Lines(out) {
		if folder, err := filepath.Rel(here, strings.TrimSpace(line)); err == nil && filepath.IsLocal(folder) {
			folders = append(folders, folder)
		}
	}
	return folders, err
}

// committed returns the files of the repository, each with its mode and the hash of its content.
// A file that is not committed as it stands is an error: its result would count for another one.
func committed(ctx context.Context) (map[string]string, error) {
	changed, err := output(ctx, "git", "status", "--porcelain", "--", ".", ":!"+resultsFile)
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("commit first: the results are of commits, and these files are not committed:\n%s", changed)
	}
	out, err := output(ctx, "git", "ls-files", "-s")
	files := map[string]string{}
	for line := range strings.Lines(out) {
		if content, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); found {
			files[name] = content
		}
	}
	return files, err
}

// hash is of the files in own folders, and of the files of packages but for their tests and pages.
func hash(files map[string]string, own, folders []string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			inside := slices.ContainsFunc(own, func(f string) bool { return strings.HasPrefix(name, f+"/") })
			tests := strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") || strings.HasSuffix(name, ".md")
			if (inside || !tests && slices.Contains(folders, path.Dir(name)) || name == "go.mod") && name != resultsFile && !yield(name) {
				return
			}
		}
	}) {
		fmt.Fprintf(sum, "%s %s\n", files[name], name)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

func readResults() (map[string]result, error) {
	text, err := os.ReadFile(resultsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	results := map[string]result{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 5 {
			results[f[0]] = result{f[0], f[1], f[2], f[3], f[4]}
		}
	}
	return results, nil
}

// note writes the result of a part in the place of its last one.
func note(ctx context.Context, j job, failure error) error {
	results, err := readResults()
	if err != nil {
		return err
	}
	commit, err := output(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	outcome := "ok"
	if failure != nil {
		outcome = "failed"
	}
	results[j.name] = result{j.name, j.inputs, strings.TrimSpace(commit), outcome, time.Now().UTC().Format(time.DateOnly)}
	var text strings.Builder
	for _, p := range parts {
		if r := results[p.name]; r.part != "" {
			fmt.Fprintf(&text, "%-24s %s %s %s %s\n", r.part, r.inputs, r.commit, r.outcome, r.date)
		}
	}
	return os.WriteFile(resultsFile, []byte(text.String()), 0o600)
}

func output(ctx context.Context, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", command, err, said.Bytes())
	}
	return string(out), err
}

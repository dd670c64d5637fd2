package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Implementation is a client that is ready to run.
type Implementation struct {
	Name     string
	Language string   // go, python, node or java
	Command  []string // to be followed by the arguments of the protocol
	Dir      string   // with what it has fetched
}

// Setup sets up the clients that are not yet there as their files want them, one
// after the other, and reports each to tell. All that is missing is in the error.
func Setup(ctx context.Context, progress io.Writer) ([]Implementation, error) {
	module, err := moduleFolder(ctx)
	if err != nil {
		return nil, err
	}
	var list []Implementation
	var missing []error
	for _, l := range languages {
		dir, err := l.setUp(ctx, module, progress)
		if err != nil {
			missing = append(missing, fmt.Errorf("the client of %s: %w", l.name, err))
			continue
		}
		list = append(list, Implementation{Name: l.name, Language: l.dir, Command: expand(l.run, module, dir), Dir: dir})
	}
	return list, errors.Join(missing...)
}

// setUp returns the client's folder. It is made beside its place and renamed, so
// that a folder that is there is a whole one.
func (l language) setUp(ctx context.Context, module string, progress io.Writer) (dir string, err error) {
	stamp, err := l.fingerprint(ctx, module)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(module, "..", "..", ".cache", "grpc")
	dir = filepath.Join(cache, l.dir+"-"+stamp)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fmt.Fprintf(progress, "setting up the client of %s, once for these pins\n", l.name)
	began := time.Now()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unfinished, err := os.MkdirTemp(cache, ".unfinished-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished)
	if err := l.fill(ctx, module, unfinished); err != nil {
		return "", err
	}
	if err := l.removeOlder(cache); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "set up the client of %s in %s\n", l.name, time.Since(began).Round(time.Second))
	return dir, os.Rename(unfinished, dir)
}

// fill copies the client's files into a folder and runs the commands there.
func (l language) fill(ctx context.Context, module, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(l.folder(module))); err != nil {
		return err
	}
	for _, step := range l.steps {
		arguments := expand(step, module, dir)
		if strings.Contains(arguments[0], "/") {
			arguments[0] = filepath.Join(dir, arguments[0])
		}
		if _, err := output(ctx, dir, arguments...); err != nil {
			return err
		}
	}
	return nil
}

// removeOlder removes what was set up from other pins.
func (l language) removeOlder(cache string) error {
	older, err := filepath.Glob(filepath.Join(cache, l.dir+"-*"))
	if err != nil {
		return err
	}
	for _, dir := range older {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func (l language) folder(module string) string { return filepath.Join(module, "clients", l.dir) }

// expand fills in the folders.
func expand(arguments []string, module, dir string) []string {
	arguments = slices.Clone(arguments)
	for i, a := range arguments {
		arguments[i] = strings.NewReplacer("$MODULE", module, "$DIR", dir).Replace(a)
	}
	return arguments
}

// moduleFolder is where the go.mod of this module lies.
func moduleFolder(ctx context.Context) (string, error) {
	file, err := output(ctx, "", "go", "env", "GOMOD")
	return filepath.Dir(strings.TrimSpace(string(file))), err
}

// output runs a program in a folder. Whatever it says belongs to its error.
func output(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return out, nil
}

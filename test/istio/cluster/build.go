package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// The programs. Each is a module in a folder of that name beside this package:
// their dependencies do not fit together.
const (
	etcd      = "etcd"
	apiserver = "apiserver"
	istiod    = "istiod"
	kubectl   = "kubectl"
)

// Programs is where the programs are.
type Programs struct {
	Repository string
	Isthmus    string // set by who builds it; it prints the bootstraps of Envoys
	paths      map[string]string
	envoy      string
}

// Build builds the programs that are not yet there as their modules want them,
// one after the other, fetches Envoy, and tells of each.
func Build(ctx context.Context, progress io.Writer) (*Programs, error) {
	root, err := repository(ctx)
	if err != nil {
		return nil, err
	}
	p := &Programs{Repository: root, paths: map[string]string{}}
	for _, name := range []string{etcd, apiserver, istiod, kubectl} {
		if p.paths[name], err = build(ctx, root, name, progress); err != nil {
			return nil, err
		}
	}
	p.envoy, err = proxy.Fetch(ctx, progress)
	return p, err
}

// Kubectl is where kubectl is.
func (p *Programs) Kubectl() string { return p.paths[kubectl] }

// build returns where a program is: in bin/ of the repository, in a file that
// is named after all that it was built from.
func build(ctx context.Context, root, name string, progress io.Writer) (path string, err error) {
	module := filepath.Join(root, "test", "istio", name)
	stamp, err := fingerprint(ctx, module)
	if err != nil {
		return "", fmt.Errorf("what %s is built from: %w", name, err)
	}
	path = filepath.Join(root, "bin", name+"-"+stamp)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintf(progress, "building %s, once for these pins; this takes minutes\n", name)
	began := time.Now()
	if err := compile(ctx, module, path); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	fmt.Fprintf(progress, "built %s in %s\n", name, time.Since(began).Round(time.Second))
	return path, nil
}

// compile builds beside the path and renames, so that a program that is there
// is a whole one. Those of older pins are removed.
func compile(ctx context.Context, module, path string) error {
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(unfinished)
	if _, err := tool(ctx, "-C", module, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", unfinished, "."); err != nil {
		return err
	}
	older, err := filepath.Glob(path[:strings.LastIndexByte(path, '-')] + "-????????????")
	if err != nil {
		return err
	}
	for _, old := range older {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return os.Rename(unfinished, path)
}

// fingerprint is 12 hexadecimal digits.
func fingerprint(ctx context.Context, module string) (string, error) {
	sum := sha256.New()
	for _, file := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file, len(text), text)
	}
	version, err := tool(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum.Write(version)
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// repository is the folder of this repository: two above this module, in which
// the tests run.
func repository(ctx context.Context) (string, error) {
	file, err := tool(ctx, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(strings.TrimSpace(string(file))))), nil
}

// tool runs the go command.
func tool(ctx context.Context, arguments ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "go", arguments...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, exit.Stderr)
	}
	return out, err
}

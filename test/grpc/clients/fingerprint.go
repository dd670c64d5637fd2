package clients

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// fingerprint is 12 hexadecimal digits over everything that the client is made
// from. The error names what is not installed.
func (l language) fingerprint(ctx context.Context, module string) (string, error) {
	sum := sha256.New()
	add := func(name string, content []byte) { fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content) }
	for _, t := range l.tools {
		version, err := t.ask(ctx)
		if err != nil {
			return "", err
		}
		add(t.name, version)
	}
	for _, step := range l.steps {
		add("step", fmt.Append(nil, step))
	}
	files, err := l.files(module)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", err
		}
		add(file, content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// files are the client's files, relative to the module, in order.
func (l language) files(module string) ([]string, error) {
	files := append([]string(nil), l.pins...)
	err := filepath.WalkDir(l.folder(module), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := filepath.Rel(module, path)
		files = append(files, file)
		return err
	})
	return files, err
}

// ask returns the tool's version.
func (t tool) ask(ctx context.Context) ([]byte, error) {
	if _, err := exec.LookPath(t.name); err != nil {
		return nil, fmt.Errorf("%s is not installed; on Debian: apt-get install %s", t.name, t.debian)
	}
	return output(ctx, "", append([]string{t.name}, t.version...)...)
}

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// areManifests reports whether the first of some paths is a folder, a pipe, or a file with
// an object.
func areManifests(paths []string) bool {
	if info, err := os.Stat(paths[0]); isPipe(paths[0]) || err == nil && info.IsDir() {
		return true
	}
	text, err := bounded.File(paths[0])
	return err == nil && hasObject(text)
}

// isPipe reports whether a path is the standard input, or another stream that can be read
// only once.
func isPipe(path string) bool {
	if path == stdin || path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// stdin is the path that stands for the standard input.
const stdin = "-"

// hasObject reports whether a text contains an object. A configuration has neither an
// apiVersion nor a kind.
func hasObject(text []byte) bool {
	for decoder := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		switch err := decoder.Decode(&object); {
		case object.APIVersion != "" && object.Kind != "":
			return true
		case err != nil:
			return false
		}
	}
}

// validateManifests checks files and folders as file sources would read them. Files are
// copied into a folder of their own, under the paths that were given.
func validateManifests(c *cobra.Command, paths []string, f term.Format, limit term.Timeout) error {
	alone, err := os.MkdirTemp("", "isthmus-validate-")
	if err != nil {
		return term.Wrong(fmt.Errorf("make a folder for copies of the manifests: %w", err))
	}
	defer os.RemoveAll(alone)
	var folders []string
	files := false
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case isPipe(path):
			files = true
			if err := copyPipe(c, alone, path); err != nil {
				return term.Wrong(err)
			}
		case err != nil:
			return term.Wrong(fmt.Errorf("%s cannot be read: %w", path, err))
		case info.IsDir():
			folders = append(folders, path)
		case !isManifest(path):
			return term.Wrong(fmt.Errorf("%s: a file source reads only *.yaml, *.yml and *.json, without a dot at the beginning; rename the file", path))
		default:
			files = true
			if err := copyInto(alone, path); err != nil {
				return term.Wrong(fmt.Errorf("%s cannot be read: %w", path, err))
			}
		}
	}
	if files {
		folders = append(folders, alone)
	}
	loaded := manifestsIn(folders)
	if !c.Flags().Changed("timeout") {
		limit = term.Timeout(localTimeout)
	}
	v := validation{Problems: []problem{}, rehearsal: shape(app.Rehearsal{})}
	return validateSources(c, v, loaded, nil, false, f, limit)
}

// manifestsIn returns a configuration with a source for each folder and no outputs.
func manifestsIn(folders []string) *config.Config {
	loaded, _ := config.Parse([]byte("sources: []\n"), os.LookupEnv) // its faults are the missing parts
	for i, folder := range folders {
		name := "manifests"
		if i > 0 {
			name = fmt.Sprintf("manifests-%d", i+1)
		}
		loaded.Sources = append(loaded.Sources, config.Source{Name: name, Kind: "file", Settings: &file.Config{Path: folder}})
	}
	return loaded
}

// isManifest reports whether a file source reads a file of this name.
func isManifest(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(filepath.Base(path), ".")
	}
	return false
}

// copyInto copies a file into a folder, under the path that it was given by.
func copyInto(folder, path string) error {
	text, err := bounded.File(path)
	if err != nil {
		return err
	}
	return writeInto(folder, path, text)
}

// copyPipe copies a stream of manifests into a folder, as stdin.yaml or under its path.
func copyPipe(c *cobra.Command, folder, path string) error {
	name, from := path, c.InOrStdin()
	if path == stdin {
		name = "stdin"
	} else {
		file, err := os.Open(path) //nolint:gosec // the caller chooses it
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", path, err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(bounded.Reader(from, name))
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", name, err)
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s is empty: pipe manifests into this command", name)
	case !hasObject(text):
		return fmt.Errorf("%s has no object with an apiVersion and a kind; check a configuration by its path, as other paths in it are relative to its folder", name)
	}
	return writeInto(folder, name+".yaml", text)
}

// writeInto writes a file below a folder.
func writeInto(folder, path string, text []byte) error {
	target := folder
	for part := range strings.SplitSeq(filepath.Clean(path), string(filepath.Separator)) {
		if strings.HasPrefix(part, ".") { // a file source reads no hidden folders
			part = "_" + strings.TrimLeft(part, ".")
		}
		target = filepath.Join(target, part)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o600)
}

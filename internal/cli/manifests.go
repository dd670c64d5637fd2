package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// areManifests reports whether the first of some paths is a folder, or a file with an
// object. A configuration has neither an apiVersion nor a kind.
func areManifests(paths []string) bool {
	if info, err := os.Stat(paths[0]); err == nil && info.IsDir() {
		return true
	}
	text, err := bounded.File(paths[0])
	if err != nil {
		return false
	}
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
func validateManifests(c *cobra.Command, paths []string, f format, limit timeout) error {
	alone, err := os.MkdirTemp("", "isthmus-validate-")
	if err != nil {
		return wrong{fmt.Errorf("make a folder for copies of the manifests: %w", err)}
	}
	defer os.RemoveAll(alone)
	var folders []string
	files := false
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return wrong{fmt.Errorf("%s cannot be read: %w", path, err)}
		case info.IsDir():
			folders = append(folders, path)
		default:
			files = true
			if err := copyInto(alone, path); err != nil {
				return wrong{fmt.Errorf("%s cannot be read: %w", path, err)}
			}
		}
	}
	if files {
		folders = append(folders, alone)
	}
	loaded := manifestsIn(folders)
	if !c.Flags().Changed("timeout") {
		limit = timeout(localTimeout)
	}
	v := validation{Problems: []problem{}, rehearsal: shape(app.Rehearsal{})}
	return validateSources(c, v, loaded, f, limit)
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

// copyInto copies a file into a folder, under the path that it was given by.
func copyInto(folder, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	target := filepath.Join(folder, strings.ReplaceAll(filepath.Clean(path), "..", "_"))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A row that no longer applies, or whose replacement does not compile, is found here, and
// not in the night.
func TestEveryRowApplies(t *testing.T) {
	t.Parallel()
	if err := check("../.."); err != nil {
		t.Fatal(err)
	}
	packages := list(t)
	for _, r := range rows {
		if err := r.compile(packages); err != nil {
			t.Errorf("%s: %s: the replacement does not compile; correct the row in mutations.go: %v", r.file, r.promise, err)
		}
	}
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// list returns the packages of the rows, and all that these import.
func list(t *testing.T) map[string]listed {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, r := range rows {
		args = append(args, module+filepath.ToSlash(filepath.Dir(r.file)))
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// compile checks the types of the package with the replacement of a row.
func (r row) compile(packages map[string]listed) error {
	of := packages[module+filepath.ToSlash(filepath.Dir(r.file))]
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range of.GoFiles {
		text, err := os.ReadFile(filepath.Join(of.Dir, name))
		if err != nil {
			return err
		}
		if name == filepath.Base(r.file) {
			text = []byte(strings.Replace(string(text), r.text, r.replacement, 1))
		}
		parsed, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, parsed)
	}
	if len(files) == 0 {
		return fmt.Errorf("package %s has no files", of.ImportPath)
	}
	exported := func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) }
	config := types.Config{Importer: importer.ForCompiler(set, "gc", exported)}
	_, err := config.Check(of.ImportPath, set, files, nil)
	return err
}

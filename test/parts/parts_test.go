package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A story that was renamed would be left out of the gate without a word.
func TestStoriesAreTests(t *testing.T) {
	t.Parallel()
	for _, s := range chosen {
		files, err := filepath.Glob(filepath.Join("..", s.module, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("module %s has no tests: %v", s.module, err)
		}
		var text strings.Builder
		for _, name := range files {
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(file)
		}
		for _, name := range s.tests {
			if !strings.Contains(text.String(), "\nfunc Test"+name+"(t *testing.T)") {
				t.Errorf("module %s has no test Test%s; correct the stories", s.module, name)
			}
		}
	}
}

func TestEveryModuleIsAPart(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Glob("../*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range modules {
		module := filepath.Base(filepath.Dir(file))
		whole := slices.ContainsFunc(parts, func(p part) bool { return p.module == module })
		for _, s := range chosen {
			whole = whole || s.module == module && s.tests == nil
		}
		if !whole && module != "tools" {
			t.Errorf("nothing runs module %s as a whole; add it to parts", module)
		}
	}
}

func TestResultCountsUntilAnInputChanges(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"go.mod": "1", "push/a.go": "1", "push/a_test.go": "1", "push/inner/a.go": "1", "test/envoy/a_test.go": "1",
		"test/envoy/testdata/a": "1", "test/testkit/until/until.go": "1", "docs/a.md": "1", resultsFile: "1",
	}
	hashed := func(changed string) string {
		files := maps.Clone(files)
		if changed != "" {
			files[changed] = "2"
		}
		return hash(files, []string{"test/envoy"}, []string{"push", "test/testkit/until"})
	}
	for file := range files {
		input := !slices.Contains([]string{"push/a_test.go", "push/inner/a.go", "docs/a.md", resultsFile}, file)
		if (hashed(file) != hashed("")) != input {
			t.Errorf("%s: is it an input? want %v", file, input)
		}
	}
}

// A flag of a seed that a package does not have ends its tests, so a package of a module with
// tests of its own is run by itself.
func TestInnerPackagesAreRun(t *testing.T) {
	t.Parallel()
	for _, p := range parts {
		if p.module == "" || seeds(p.module) == nil && p.inner == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", p.module, "*", "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if inner := "./" + filepath.Base(filepath.Dir(file)); inner != p.inner {
				t.Errorf("the gate does not run %s of module %s; name it in parts", inner, p.module)
			}
		}
	}
}

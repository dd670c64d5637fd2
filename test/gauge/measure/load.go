package measure

import (
	"bytes"
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
	"slices"
	"strings"
)

// Package is a package of the product with its types. Generated files are checked
// with it, and counted nowhere.
type Package struct {
	Path  string // relative to the module
	Files []*ast.File
	set   *token.FileSet
	types *types.Package
	info  *types.Info
}

// place says where something is written.
func (p *Package) place(n ast.Node) string {
	at := p.set.Position(n.Pos())
	return fmt.Sprintf("%s/%s:%d", p.Path, filepath.Base(at.Filename), at.Line)
}

// listed is a package as the go command describes it.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles, Imports              []string
	Module                        *struct{ Path string }
}

// Load reads and checks the packages of the module in a folder. Packages for tests
// and the demo are left out. The types of other modules come from the compiler's
// export data, which the go command builds if its cache lacks it.
func Load(dir string) ([]*Package, error) {
	all, err := list(dir, "-deps", "./...")
	if err != nil {
		return nil, err
	}
	module, err := modulePath(dir)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(all), func(l listed) bool {
		return l.Module == nil || l.Module.Path != module || len(l.GoFiles) == 0 || isForTests(relative(module, l.ImportPath))
	})
	exports, err := exportData(dir, module, own)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	checker := newChecker(set, importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	}))
	var product []*Package
	for _, l := range own { // each behind those that it imports
		p := &Package{Path: relative(module, l.ImportPath), set: set}
		for _, name := range l.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(l.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.Files = append(p.Files, file)
		}
		if err := checker.check(l.ImportPath, p); err != nil {
			return nil, err
		}
		if !isDemo(p.Path) {
			product = append(product, p)
		}
	}
	if len(product) == 0 {
		return nil, errors.New("found no package of the product")
	}
	return product, nil
}

func relative(module, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// isForTests holds for the folder of tests and for suites, such as push/pushtest.
func isForTests(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	return path == "test" || strings.HasPrefix(path, "test/") || strings.HasSuffix(base, "test")
}

func isDemo(path string) bool {
	return path == "demo" || strings.HasPrefix(path, "demo/")
}

func modulePath(dir string) (string, error) {
	out, err := goCommand(dir, "list", "-m")
	return strings.TrimSpace(string(out)), err
}

// exportData returns the files with the types of the packages that the product imports.
func exportData(dir, module string, own []listed) (map[string]string, error) {
	var imports []string
	for _, l := range own {
		for _, path := range l.Imports {
			if path != "unsafe" && path != module && !strings.HasPrefix(path, module+"/") {
				imports = append(imports, path)
			}
		}
	}
	slices.Sort(imports)
	imports = slices.Compact(imports)
	if len(imports) == 0 {
		return nil, nil
	}
	all, err := list(dir, append([]string{"-deps", "-export"}, imports...)...)
	exports := make(map[string]string, len(all))
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	return exports, err
}

func list(dir string, args ...string) ([]listed, error) {
	out, err := goCommand(dir, append([]string{"list", "-json=ImportPath,Dir,Name,Export,GoFiles,Imports,Module"}, args...)...)
	if err != nil {
		return nil, err
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		switch err := decoder.Decode(&l); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, l)
	}
}

// goCommand runs the go command without cgo, like the project's builds, so that
// their cache serves it.
func goCommand(dir string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// checker checks the types of packages. A package that was checked is known to
// those that import it, unexported types included.
type checker struct {
	set   *token.FileSet
	own   map[string]*types.Package
	other types.Importer
}

func newChecker(set *token.FileSet, other types.Importer) *checker {
	return &checker{set, map[string]*types.Package{}, other}
}

// Import implements [types.Importer].
func (c *checker) Import(path string) (*types.Package, error) {
	if own := c.own[path]; own != nil {
		return own, nil
	}
	return c.other.Import(path)
}

func (c *checker) check(path string, p *Package) error {
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: c}
	checked, err := config.Check(path, c.set, p.Files, p.info)
	if err != nil {
		return err
	}
	p.types = checked
	c.own[path] = checked
	p.Files = slices.DeleteFunc(p.Files, ast.IsGenerated)
	return nil
}

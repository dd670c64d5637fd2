// Package isthmus_test keeps the architecture: who may import whom, that every
// package says what it is, and that nothing happens at import time. It reads
// the sources only and runs nothing.
package isthmus_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/isthmus-mesh/isthmus"

// A room is a package together with the packages below it that have no room
// of their own; inside a room imports are free. Rooms lie on floors, and the rooms
// of one folder may have steps within their floor.
type room struct {
	path        string // relative to the module; a last element "*" stands for any one name
	floor, step int
	// outside lists what may be imported from outside the module, beside the
	// standard library; "*" is anything. A path stands for what is below it too.
	outside []string
	// holds is the content of the room, for the table in docs/architecture.md.
	holds string
}

var (
	anything = []string{"*"}
	// Floors 0 and 1 speak no third party's types. What is allowed here brings
	// none: it only adds to the standard library's sync.
	floor1 = []string{"golang.org/x/sync"}
	// What Kubernetes takes for a name.
	kubernetesNames = "k8s.io/apimachinery/pkg/api/validate/content"
)

// rooms is the whole building. Imports only go down: to a lower floor, or to a lower step of
// the same floor where both rooms are of one folder. A package is a room of its own when it has
// one subject, and imports that go down. go test . -update writes the table of
// docs/architecture.md anew.
var rooms = []room{
	// Floor 0: values. model is what everything speaks, so it depends on nothing.
	{"model", 0, 0, nil, "records, listings and the values everything speaks; standard library only"},
	{"immutable", 0, 0, []string{"github.com/tidwall/btree"}, "the persistent ordered map under store and catalog"},
	{"internal/wait", 0, 0, nil, "the sleep and the backoff of every floor"},
	{"internal/*", 0, 0, anything, "small utilities that know nothing of Isthmus"},
	{"api", 0, 0, []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, "the messages of our own API, generated from its proto files"},
	{"output/envoy/names", 0, 0, nil, "the names of Envoys' resources, which are Istio's"},

	// Floor 1: the data path, without any protocol.
	{"source", 1, 0, floor1, "the contract of a registry; its status and settings"},
	{"source/index", 1, 1, nil, "pure: a source's records in numbers"},
	{"source/reading", 1, 2, nil, "pure: checks a listing and compares it with the stored records"},
	{"source/hold", 1, 3, nil, "pure: judges the records that a listing lacks"},
	{"source/baseline", 1, 4, nil, "judges a source by the objects that another system has of it"},
	{"source/supervise", 1, 5, floor1, "runs a source, and turns its listings into commits"},
	{"store", 1, 0, floor1, "every record; commits, and watches that lose nothing"},
	{"catalog", 1, 0, floor1, "merges records into immutable snapshots, with the exact change between two"},
	{"push", 1, 0, floor1, "who subscribed to which resources, which of them each client lacks, and sending them"},
	{"controller", 1, 0, floor1, "reconciles keys against a primed snapshot, for outputs that write elsewhere"},
	{"secrets", 1, 0, nil, "the certificates that clients are sent, by whoever issues them"},
	// Programs that are no part of Isthmus use it, so it knows the messages of the API, and
	// nothing of the core.
	{"client", 1, 0, []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, "a replica of the records of an Isthmus, for programs that read its resource API"},
	// The parsers of SPIFFE identities and of signatures of tokens are not ours to write.
	{
		"identity", 1, 0,
		[]string{"github.com/go-jose/go-jose/v4", "github.com/spiffe/go-spiffe/v2", "golang.org/x/sync"},
		"who a client is, by its certificate and its token; keys of issuers, revocations",
	},
	{"output/envoy/policy", 1, 0, nil, "the settings of Envoys, and the lookups over them; neither catalog nor engine"},

	// Floor 2: what the core and the rooms above it are to each other.
	{"output", 2, 0, nil, "the interface between an output and the application"},
	// It knows of the engine that it has clients.
	{
		"output/streams", 2, 1,
		[]string{"google.golang.org/grpc", "google.golang.org/protobuf", "golang.org/x/sync", "github.com/spiffe/go-spiffe/v2"},
		"the gRPC server that xDS, MCP and the watch have in common, with its guards; no protocol",
	},
	{"output/envoy/wire", 2, 1, anything, "the messages of Envoys, from plain values"},
	{"output/envoy/node", 2, 1, nil, "pure: the Envoy of a client"},
	{"output/envoy/reach", 2, 2, nil, "pure: how services are reached"},
	{"output/envoy/sds", 2, 2, nil, "the subjects of secrets, apart from who gets them"},
	{"output/envoy/lb", 2, 3, nil, "pure: which endpoints are used"},
	{"output/envoy/vhost", 2, 3, anything, "pure: who owns a domain"},
	{"output/envoy/explain", 2, 3, anything, "where a call of a client ends"},
	{"output/envoy/conflict", 2, 4, nil, "pure: the services that calls do not reach"},
	{"output/envoy/leds", 2, 4, nil, "large services as collections of endpoints"},
	// Objects of other APIs, for whoever reads or writes them. It does no
	// I/O, so it has the types of an API and nothing that could speak to one.
	{"convert/smi", 2, 0, []string{kubernetesNames}, "SMI's objects"},
	{"convert/istio", 2, 1, []string{"istio.io/api", "google.golang.org/protobuf", kubernetesNames}, "Istio's objects: reads, judges and composes them; no I/O"},
	{"convert/kubernetes", 2, 1, []string{"k8s.io/api", "k8s.io/apimachinery/pkg/apis/meta/v1"}, "Kubernetes' Services, slices and nodes as records"},
	// The output that serves them and the readers of another Isthmus both need them, and
	// neither needs gRPC for that.
	{"convert/resource", 2, 1, []string{"google.golang.org/protobuf"}, "records as messages of our own API, and back"},
	// For the commands that change it, and for whoever serves its certificates. It speaks no
	// protocol. go-jose signs tokens, and go-spiffe has the names in them and in certificates.
	{"authority", 2, 0, []string{"github.com/go-jose/go-jose/v4", "github.com/spiffe/go-spiffe/v2"}, "the certificate authority in a folder"},
	{"secrets/files", 2, 0, nil, "the certificates that others write into files"},
	{"source/mirror", 2, 0, nil, "a registry's objects by key, for the registries that report them one by one"},

	// Floor 3: one registry or protocol each.
	{"source/machines", 3, 0, anything, "the common part of clouds that list machines"},
	{"source/*", 3, 1, anything, "one kind of registry each"},
	{"output/*", 3, 3, anything, "one protocol or one pure translation each"},
	// The inner walls of output/istio: the rooms that decide which objects are written do no I/O.
	{"output/istio/object", 3, 0, []string{"istio.io/api", "google.golang.org/protobuf", "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"}, "Istio's objects as the API server has them"},
	{"output/istio/observed", 3, 1, []string{
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/client-go/tools/cache", // a store in memory
	}, "the short form of the objects in the API server"},
	{"output/istio/translate", 3, 1, nil, "pure: the desired objects"},
	{"output/istio/plan", 3, 2, nil, "pure: compares desired and observed objects, and returns actions with reasons"},
	// The inner walls of output/xds: both are pure.
	{"output/xds/node", 3, 0, []string{"github.com/envoyproxy/go-control-plane/envoy", "google.golang.org/grpc", "google.golang.org/protobuf"}, "the node of a client of xDS"},
	{"output/xds/wire", 3, 0, []string{"github.com/envoyproxy/go-control-plane/envoy", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf"}, "the messages of xDS"},

	// Floor 4: what an operator sees.
	{"admin", 4, 0, anything, "health, metrics, the admin API"},
	{"config", 4, 0, anything, "loads, expands and validates the configuration; its table of kinds alone knows every concrete type"},

	// The floors above: where everything is put together.
	{"app", 5, 0, anything, "puts the parts together, whatever their kinds"},
	{"demo", 6, 0, anything, "a second user of the application, with backends and a client around it"},
	{"cli", 7, 0, anything, "one file per command"},
	{"cmd/*", 8, 0, anything, "main"},
}

// testSupport is for tests: it may import anything, and only tests import it.
var testSupport = []string{
	"test/testkit",      // fakes, and what several tests wait, call and measure with
	"push/pushtest",     // what every producer of the engine has to pass
	"source/sourcetest", // the rules of listed sources and of baselines, on any store
	"store/storetest",   // the rules every store keeps, as a test of any store
	"test",              // end to end, scale, conformance
}

// manuals are the packages whose doc opens like a manual page: what it does,
// what it does not, and its concurrency contract take some lines.
var manuals = []string{"source", "store", "push", "catalog"}

const manualLines = 3

func TestArchitectureHolds(t *testing.T) {
	packages, err := load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("found no package: the test must run at the root of the module")
	}
	for _, p := range packages {
		for _, violation := range p.violations() {
			t.Error(violation)
		}
	}
}

// TestArchitectureIsGuarded shows that every rule bites: each case is one file
// and what is said of it.
func TestArchitectureIsGuarded(t *testing.T) {
	const doc = "// Package p says\n// on three lines\n// what it is.\npackage p\n"
	imports := func(paths ...string) string {
		file := doc
		for _, p := range paths {
			file += "import _ " + strconv.Quote(p) + "\n"
		}
		return file
	}
	tests := []struct {
		name, path, file string
		want             []string // a part of each violation, in order
	}{
		{"imports go down", "push/p.go", imports("context", module+"/model", module+"/immutable"), nil},
		{"imports never go up", "catalog/p.go", imports(module + "/config"), []string{
			"catalog/p.go:5: catalog (floor 1) imports config (floor 4)",
		}},
		{"siblings keep apart", "push/p.go", imports(module + "/catalog"), []string{"never import each other"}},
		{"a lower step of another folder keeps apart", "output/envoy/reach/p.go", imports(module + "/convert/smi"), []string{"never import each other"}},
		{"clouds share machines", "source/azure/p.go", imports(module + "/source/machines"), nil},
		{"machines know no cloud", "source/machines/p.go", imports(module + "/source/azure"), []string{"never import each other"}},
		{"registries keep apart", "source/file/p.go", imports(module + "/source/mcp"), []string{"never import each other"}},
		{"outputs keep apart", "output/xds/p.go", imports(module + "/output/envoy"), []string{"never import each other"}},
		{"floor 0 keeps apart", "immutable/p.go", imports(module + "/model"), []string{"never import each other"}},
		{"a room may have inner packages", "output/xds/p.go", imports(module + "/output/xds/wire"), nil},
		{"a node knows no stream", "output/xds/node/p.go", imports(module + "/output/xds"), []string{"never import each other"}},
		{"a message knows no node", "output/xds/wire/p.go", imports(module + "/output/xds/node"), []string{"never import each other"}},
		{"a translation reads its settings", "output/envoy/p.go", imports(module + "/output/envoy/policy"), nil},
		{"settings know no catalog", "output/envoy/policy/p.go", imports(module + "/catalog"), []string{"never import each other"}},
		{"a registry may import its contract", "source/file/p.go", imports(module+"/source", "example.org/yaml"), nil},
		{"an inner room reads its contract", "source/hold/p.go", imports(module+"/source", module+"/source/reading"), nil},
		{"a judgement knows no store", "source/hold/p.go", imports(module+"/source/reading", module+"/store"), []string{"never import each other"}},
		{"a judgement knows no supervisor", "source/hold/p.go", imports(module + "/source/supervise"), []string{"never import each other"}},
		{"a registry may read objects", "source/file/p.go", imports(module + "/convert/istio"), nil},
		{"an output may write objects", "output/istio/p.go", imports(module + "/convert/istio"), nil},
		{"a plan compares translations", "output/istio/plan/p.go", imports(module + "/output/istio/translate"), nil},
		{"a translation knows no plan", "output/istio/translate/p.go", imports(module + "/output/istio/plan"), []string{"never import each other"}},
		{"a plan asks no API server", "output/istio/plan/p.go", imports("k8s.io/client-go/rest"), []string{"third-party types"}},
		{"a plan writes nothing", "output/istio/plan/p.go", imports(module + "/output/istio/write"), []string{"never import each other"}},
		{"objects know no registry", "convert/istio/p.go", imports(module + "/source/file"), []string{
			"convert/istio (floor 2) imports source/file (floor 3): imports only go down",
		}},
		{"messages know no gRPC", "convert/resource/p.go", imports(module+"/api/isthmus/resource/v1alpha1", "google.golang.org/protobuf/proto", "google.golang.org/grpc"), []string{
			"convert/resource must not import google.golang.org/grpc",
		}},
		{"objects know no API server", "convert/istio/p.go", imports("k8s.io/client-go/rest"), []string{
			"convert/istio must not import k8s.io/client-go/rest",
		}},
		{"a client knows no store", "client/p.go", imports(module+"/immutable", "google.golang.org/grpc", module+"/store"), []string{"never import each other"}},
		{"main may call the commands", "cmd/isthmus/main.go", imports(module + "/cli"), nil},
		{"commands may start the application", "cli/p.go", imports(module + "/app"), nil},
		{"the application knows no commands", "app/p.go", imports(module + "/cli"), []string{
			"app (floor 5) imports cli (floor 7): imports only go down",
		}},
		{"a utility knows nothing of Isthmus", "internal/yamlpos/p.go", imports("example.org/yaml", module+"/model"), []string{
			"never import each other",
		}},
		{"model is standard library only", "model/p.go", imports("fmt", "golang.org/x/sync/errgroup"), []string{
			"model/p.go:6: model must not import golang.org/x/sync/errgroup",
		}},
		{"floor 1 has few libraries", "store/p.go", imports("golang.org/x/sync/errgroup", "google.golang.org/grpc"), []string{
			"store must not import google.golang.org/grpc",
		}},
		{"a similar name is another library", "store/p.go", imports("golang.org/x/synchrony"), []string{"must not import"}},
		{"only tests use test support", "store/p.go", imports(module + "/store/storetest"), []string{
			"only tests import store/storetest",
		}},
		{"only tests use the rules of producers", "output/envoy/p.go", imports(module + "/push/pushtest"), []string{
			"only tests import push/pushtest",
		}},
		{"the demo uses no test support", "demo/p.go", imports(module + "/test/testkit/servicecenter"), []string{
			"only tests import test/testkit/servicecenter",
		}},
		{"test support is free", "store/storetest/p.go", imports(module+"/store", "pgregory.net/rapid"), nil},
		{"tests are free", "model/p_test.go", imports(module + "/app"), nil},
		{"an unknown package is named", "helper/p.go", doc, []string{"helper has no room: add it to rooms"}},
		{"an unknown import is named", "push/p.go", imports(module + "/helper"), []string{"helper, which has no room"}},
		{"a package has a doc", "config/p.go", "package p\n", []string{"config has no package comment"}},
		{"a manual is longer", "source/p.go", "// Package p is.\npackage p\n", []string{"at least 3 lines"}},
		{"no init", "config/p.go", doc + "func init() {}\n", []string{"config/p.go:5: init: "}},
		{"a method may be called init", "config/p.go", doc + "type t struct{}\nfunc (t) init() {}\n", nil},
		{"generated code may have init", "config/p.pb.go", "// Code generated by protoc. DO NOT EDIT.\n\n" + doc + "func init() {}\n", nil},
		{"a generator is a program of its own", "model/gen.go", "//go:build ignore\n\n" + imports(module+"/config"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packages, err := load(fstest.MapFS{test.path: {Data: []byte(test.file)}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range packages {
				got = append(got, p.violations()...)
			}
			matches := slices.EqualFunc(got, test.want, strings.Contains)
			if !matches {
				t.Errorf("violations (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

func TestArchitectureLeavesOut(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("package p\n")}
	packages, err := load(fstest.MapFS{
		"model/p.go":               file,
		"model/p_test.go":          file,
		"push/testdata/p.go":       file,
		".cache/p.go":              file,
		"_old/p.go":                file,
		"test/e2e/go.mod":          {Data: []byte("module e2e\n")},
		"test/e2e/p.go":            file,
		"test/e2e/inner/p.go":      file,
		"docs/design/0001-note.md": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range packages {
		got = append(got, p.path)
	}
	if diff := cmp.Diff([]string{"model"}, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

// pkg is what the rules need to know of a package's files, tests left out.
type pkg struct {
	path    string
	doc     string
	imports []reference
	inits   []reference
}

// reference is something found at a place.
type reference struct{ at, path string }

func (p *pkg) violations() []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	switch lines := strings.Count(p.doc, "\n"); {
	case lines == 0:
		add("%s has no package comment: say what it does, what it does not, and its concurrency contract", p.path)
	case slices.Contains(manuals, p.path) && lines < manualLines:
		add("%s: the package comment is to read like a manual page, of at least %d lines", p.path, manualLines)
	}
	for _, init := range p.inits {
		add("%s: init: nothing happens at import time; let app call it", init.at)
	}
	if isTestSupport(p.path) {
		return found
	}
	own, ok := roomOf(p.path)
	if !ok {
		add("%s has no room: add it to rooms in architecture_test.go, with its subject", p.path)
		return found
	}
	for _, i := range p.imports {
		if why := own.forbids(i.path); why != "" {
			add("%s: %s", i.at, why)
		}
	}
	return found
}

// forbids returns why the room must not import a path, or nothing.
func (r room) forbids(imported string) string {
	inside, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		if isStandard(imported) || slices.ContainsFunc(r.outside, func(a string) bool { return a == "*" || within(imported, a) }) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s: third-party types stay out of floors 0 and 1, and what does I/O out of floor 2",
			r.path, imported)
	}
	if isTestSupport(inside) {
		return fmt.Sprintf("%s: only tests import %s", r.path, inside)
	}
	other, ok := roomOf(inside)
	switch {
	case !ok:
		return fmt.Sprintf("%s imports %s, which has no room in architecture_test.go", r.path, inside)
	case other.path == r.path || other.floor < r.floor:
		return ""
	case other.floor > r.floor:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports only go down", r.path, r.floor, other.path, other.floor)
	case other.step < r.step && kin(r.path, other.path):
		return ""
	default:
		return fmt.Sprintf("%s imports %s: siblings (floor %d) never import each other, but for a lower step of their folder", r.path, other.path, r.floor)
	}
}

// kin holds for rooms of one folder, and for a room and the folder that it lies in.
func kin(a, b string) bool {
	folder := path.Dir(a)
	return folder != "." && folder == path.Dir(b) || within(a, b) || within(b, a)
}

// roomOf returns the room of a package, its path made concrete: source/* is
// the room source/file of the package source/file/inner.
func roomOf(pkg string) (room, bool) {
	var best room
	for _, r := range rooms {
		concrete, ok := enter(pkg, r.path)
		// The longest wins, and a name wins over a star.
		if ok && (len(concrete) > len(best.path) || len(concrete) == len(best.path) && concrete == r.path) {
			best, best.path = r, concrete
		}
	}
	return best, best.path != ""
}

// enter matches a package with a pattern of rooms and returns the part of the
// package's path that the pattern covers.
func enter(pkg, pattern string) (string, bool) {
	elements := strings.Split(pkg, "/")
	n := strings.Count(pattern, "/") + 1
	if len(elements) < n {
		return "", false
	}
	concrete := strings.Join(elements[:n], "/")
	ok, err := path.Match(pattern, concrete)
	return concrete, ok && err == nil
}

func isTestSupport(pkg string) bool {
	return slices.ContainsFunc(testSupport, func(s string) bool { return within(pkg, s) })
}

// isStandard holds for the standard library: no domain in the first element.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within holds for a path and everything below it.
func within(p, parent string) bool { return p == parent || strings.HasPrefix(p, parent+"/") }

// load reads the packages of the module, sorted by path.
func load(root fs.FS) ([]*pkg, error) {
	byPath := map[string]*pkg{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parse(fset, root, name)
		if err != nil || isIgnored(file) {
			return err
		}
		dir := path.Dir(name)
		if byPath[dir] == nil {
			byPath[dir] = &pkg{path: dir}
		}
		byPath[dir].add(file, func(pos token.Pos) string { return fmt.Sprintf("%s:%d", name, fset.Position(pos).Line) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	var packages []*pkg
	for _, p := range byPath {
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return packages, nil
}

// skip leaves out the folders that the go command leaves out of ./..., other
// modules among them.
func skip(root fs.FS, dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return fs.SkipDir
	}
	return nil
}

func parse(fset *token.FileSet, root fs.FS, name string) (*ast.File, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
}

// add notes what the rules need to know of one file of the package.
func (p *pkg) add(file *ast.File, at func(token.Pos) string) {
	p.doc += file.Doc.Text()
	for _, i := range file.Imports {
		// The parser has checked that it is a quoted string.
		imported, _ := strconv.Unquote(i.Path.Value)
		p.imports = append(p.imports, reference{at(i.Pos()), imported})
	}
	if ast.IsGenerated(file) {
		return
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			p.inits = append(p.inits, reference{at(f.Pos()), "init"})
		}
	}
}

// isIgnored holds for a file that no build takes in: a generator for go run.
func isIgnored(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			if comment.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}

package feature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// registry is a folder of manifests, one source of an Isthmus.
type registry struct {
	t        *testing.T
	name     string
	path     string
	optional bool
}

// newRegistry makes an empty registry.
func newRegistry(t *testing.T, name string) *registry {
	t.Helper()
	r := &registry{t: t, name: name, path: filepath.Join(t.TempDir(), name)}
	r.Make()
	return r
}

// Make makes the folder.
func (r *registry) Make() {
	r.t.Helper()
	r.must(os.MkdirAll(r.path, 0o755))
}

// Exists reports whether the folder is there.
func (r *registry) Exists() bool {
	info, err := os.Stat(r.path)
	return err == nil && info.IsDir()
}

// Write makes a file say documents and nothing else, in one step.
func (r *registry) Write(file string, documents ...any) {
	r.t.Helper()
	texts := make([]string, len(documents))
	for i, d := range documents {
		texts[i] = fmt.Sprint(d)
	}
	r.WriteBytes(file, []byte(strings.Join(texts, "\n---\n")))
}

// WriteBytes is Write for what is not text.
func (r *registry) WriteBytes(file string, content []byte) {
	r.t.Helper()
	draft := filepath.Join(filepath.Dir(r.At(file)), ".draft")
	r.must(os.MkdirAll(filepath.Dir(draft), 0o755))
	r.must(os.WriteFile(draft, content, 0o600))
	r.must(os.Rename(draft, r.At(file)))
}

// Overwrite is Write in two steps: the file is emptied and filled again.
func (r *registry) Overwrite(file string, document any) {
	r.t.Helper()
	r.must(os.WriteFile(r.At(file), []byte(fmt.Sprint(document)), 0o600))
}

// Move gives a file another name.
func (r *registry) Move(from, to string) {
	r.t.Helper()
	r.must(os.Rename(r.At(from), r.At(to)))
}

// Link makes a file a link to a target.
func (r *registry) Link(target, file string) {
	r.t.Helper()
	r.must(os.Symlink(target, r.At(file)))
}

// Replace puts another registry in the place of all there is.
func (r *registry) Replace(next *registry) {
	r.t.Helper()
	old := r.path + ".old"
	r.must(os.Rename(r.path, old))
	r.must(os.Rename(next.path, r.path))
	r.must(os.RemoveAll(old))
}

// Return brings back a registry that is gone, with what another holds.
func (r *registry) Return(as *registry) {
	r.t.Helper()
	r.must(os.Rename(as.path, r.path))
}

// Remove removes a file, or a folder with everything below it; "" is all of it.
func (r *registry) Remove(file string) {
	r.t.Helper()
	r.must(os.RemoveAll(r.At(file)))
}

// At is where a file lies.
func (r *registry) At(file string) string { return filepath.Join(r.path, file) }

func (r *registry) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// service is a ServiceEntry. Fields are written as YAML on one line.
type service struct {
	Host       string
	Name       string // default: the host's first part
	Namespace  string // default: shop
	Resolution string // default: STATIC
	Ports      string // default: 80, named grpc
	ExportTo   string
	Selector   string // of workloads
	Endpoints  []string
}

func (s service) String() string {
	first, _, _ := strings.Cut(s.Host, ".")
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n")
	fmt.Fprintf(&b, "metadata: {name: %s, namespace: %s}\n", orElse(s.Name, first), orElse(s.Namespace, "shop"))
	fmt.Fprintf(&b, "spec:\n  hosts: [%s]\n", s.Host)
	fmt.Fprintf(&b, "  ports: %s\n", orElse(s.Ports, "[{number: 80, name: grpc, protocol: GRPC}]"))
	fmt.Fprintf(&b, "  resolution: %s\n", orElse(s.Resolution, "STATIC"))
	if s.ExportTo != "" {
		fmt.Fprintf(&b, "  exportTo: %s\n", s.ExportTo)
	}
	if s.Selector != "" {
		fmt.Fprintf(&b, "  workloadSelector: {labels: %s}\n", s.Selector)
	}
	if len(s.Endpoints) > 0 {
		fmt.Fprintf(&b, "  endpoints:\n  - %s\n", strings.Join(s.Endpoints, "\n  - "))
	}
	return b.String()
}

// workload is a WorkloadEntry. Its specification is written as an endpoint is.
type workload struct {
	Name      string
	Namespace string // default: shop
	Spec      string
	Healthy   string // the condition in the status, if there is one
}

func (w workload) String() string {
	text := fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: %s, namespace: %s}\nspec: %s\n",
		w.Name, orElse(w.Namespace, "shop"), w.Spec)
	if w.Healthy != "" {
		text += fmt.Sprintf("status: {conditions: [{type: Healthy, status: %q}]}\n", w.Healthy)
	}
	return text
}

// sidecar is a Sidecar.
type sidecar struct {
	Name      string
	Namespace string // default: shop
	Selector  string // of workloads
	Hosts     string // of its egress
}

func (s sidecar) String() string {
	selector := ""
	if s.Selector != "" {
		selector = "workloadSelector: {labels: " + s.Selector + "}, "
	}
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: %s, namespace: %s}\nspec: {%segress: [{hosts: %s}]}\n",
		s.Name, orElse(s.Namespace, "shop"), selector, s.Hosts)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

package scale_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// plane is a control plane that has the same objects as the other one, each from where
// it reads them: Isthmus from a folder, istiod from the API server.
type plane interface {
	Name() string
	XDS() string
	// Write makes an object be as it is given.
	Write(tb testing.TB, kind schema.GroupVersionResource, object *unstructured.Unstructured)
	// Move says that the first endpoint of a ServiceEntry is another one, in the cheapest
	// way: a file that is renamed, or a patch.
	Move(tb testing.TB, entry *unstructured.Unstructured)
	// CPU is what the control plane has used, and what it reads from has.
	CPU(tb testing.TB) (own, origin time.Duration)
}

// planes starts both on a cluster, with nothing to serve yet.
func planes(tb testing.TB, c *cluster.Cluster) []plane {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	istiod, err := c.StartIstiodWith(ctx, "", noAddresses)
	if err != nil {
		tb.Fatal(err)
	}
	client, err := c.API.Client()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	if err := client.Namespace(ctx, scoped); err != nil {
		tb.Fatal(err)
	}
	return []plane{startFolder(tb), &readsAPI{c, istiod, client}}
}

// scoped is the namespace of proxies that see few services.
const scoped = "scoped"

// readsFolder is Isthmus.
type readsFolder struct {
	*server
	dir string // that of its folder; files are written beside that, and renamed
}

func startFolder(tb testing.TB) *readsFolder {
	tb.Helper()
	dir := tb.TempDir()
	folder := filepath.Join(dir, "registry")
	if err := os.Mkdir(folder, 0o700); err != nil {
		tb.Fatal(err)
	}
	return &readsFolder{serveFrom(tb, dir, fmt.Sprintf(`
sources:
- {name: files, file: {path: %q}}
outputs:
  xds: {listen: "127.0.0.1:0"}
admin: {listen: "127.0.0.1:0"}
`, folder)), dir}
}

func (*readsFolder) Name() string { return "isthmus" }

var xdsAddress = regexp.MustCompile(`msg=serving .*xds=(\S+)`)

func (p *readsFolder) XDS() string { return xdsAddress.FindStringSubmatch(p.Log())[1] }

func (p *readsFolder) Write(tb testing.TB, kind schema.GroupVersionResource, object *unstructured.Unstructured) {
	tb.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		tb.Fatal(err)
	}
	name := fmt.Sprintf("%s-%s-%s.yaml", kind.Resource, object.GetNamespace(), object.GetName())
	next := filepath.Join(p.dir, name)
	if err := os.WriteFile(next, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(p.dir, "registry", name)); err != nil {
		tb.Fatal(err)
	}
}

func (p *readsFolder) Move(tb testing.TB, entry *unstructured.Unstructured) {
	tb.Helper()
	p.Write(tb, cluster.ServiceEntries, entry)
}

func (p *readsFolder) CPU(tb testing.TB) (own, origin time.Duration) {
	tb.Helper()
	return cpu(tb, p.Process), 0
}

// readsAPI is istiod.
type readsAPI struct {
	cluster *cluster.Cluster
	istiod  *cluster.Istiod
	client  *cluster.Client
}

func (*readsAPI) Name() string { return "istiod" }

func (p *readsAPI) XDS() string { return p.istiod.XDS }

func (p *readsAPI) Write(tb testing.TB, kind schema.GroupVersionResource, object *unstructured.Unstructured) {
	tb.Helper()
	if err := p.client.Apply(tb.Context(), kind, object); err != nil {
		tb.Error(err)
	}
}

func (p *readsAPI) Move(tb testing.TB, entry *unstructured.Unstructured) {
	tb.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/endpoints/0", "value": %s}]`, textOf(firstOf(entry)))
	err := p.client.Patch(tb.Context(), cluster.ServiceEntries, entry.GetNamespace(), entry.GetName(), types.JSONPatchType, patch)
	if err != nil {
		tb.Error(err)
	}
}

func (p *readsAPI) CPU(tb testing.TB) (own, origin time.Duration) {
	tb.Helper()
	return cpu(tb, p.istiod.Process), cpu(tb, p.cluster.API.Process)
}

// writeAll writes objects to both, some at a time.
func writeAll(tb testing.TB, to []plane, kind schema.GroupVersionResource, objects []*unstructured.Unstructured) {
	tb.Helper()
	const atOnce = 8
	next := make(chan *unstructured.Unstructured)
	var writers sync.WaitGroup
	for range atOnce {
		writers.Go(func() {
			for object := range next {
				for _, p := range to {
					p.Write(tb, kind, object)
				}
			}
		})
	}
	for _, object := range objects {
		next <- object
	}
	close(next)
	writers.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
}

// entry is the ServiceEntry of the nth service. What it is reached by is a free port,
// since Envoys that have listeners listen there; its endpoints are on loopback. All
// but one call go to the first endpoint, by its weight, so that one call shows which
// that is.
func entry(n int, port, target int64, endpoints int) *unstructured.Unstructured {
	list := []any{map[string]any{"address": loopback(n * endpoints), "weight": int64(1_000_000)}}
	for k := 1; k < endpoints; k++ {
		list = append(list, map[string]any{"address": loopback(n*endpoints + k), "weight": int64(1)})
	}
	return ofIstio("ServiceEntry", namespace, name(n), map[string]any{
		"hosts": []any{host(n)}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports":     []any{map[string]any{"number": port, "targetPort": target, "name": "http", "protocol": "HTTP"}},
		"endpoints": list,
	})
}

// scopeOf has proxies of a namespace see the first services alone.
func scopeOf(in string, services int) *unstructured.Unstructured {
	var hosts []any
	for n := range services {
		hosts = append(hosts, namespace+"/"+host(n))
	}
	return ofIstio("Sidecar", in, "default", map[string]any{"egress": []any{map[string]any{"hosts": hosts}}})
}

func ofIstio(kind, in, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": kind, "spec": spec,
	}}
	object.SetNamespace(in)
	object.SetName(name)
	return object
}

// loopback is the nth address of loopback, the first few of which are left to others.
func loopback(n int) string {
	n += 1 << 16
	return fmt.Sprintf("127.%d.%d.%d", n>>16, n>>8&255, n&255)
}

package scale_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	desired "github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// resources are those that the objects of a service are of.
var resources = map[desired.Kind]schema.GroupVersionResource{
	desired.ServiceEntry: cluster.ServiceEntries,
	workloadEntry:        cluster.WorkloadEntries,
}

// trial is a service in one form, with servers of its own.
type trial struct {
	*fleet
	cluster *cluster.Cluster
	client  *cluster.Client
	raw     *http.Client // the API server's answers as they are
	server  string       // URL of the API server
	reader  *reader      // the newest istiod
	figures figures

	apiHeap, istiodHeap float64 // of servers that have nothing yet
}

// spent is the processor time that the servers have used.
type spent struct{ api, istiod time.Duration }

func newTrial(b *testing.B, f *fleet) *trial {
	b.Helper()
	t := &trial{fleet: f, cluster: startCluster(b), figures: figures{}}
	config, err := t.cluster.API.Config(cluster.Admin)
	if err != nil {
		b.Fatal(err)
	}
	config.DisableCompression = true
	t.server = config.Host
	if t.raw, err = rest.HTTPClientFor(config); err != nil {
		b.Fatal(err)
	}
	if t.client, err = t.cluster.API.Client(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.client.Close(); t.raw.CloseIdleConnections() })
	return t
}

// create writes everything, while an istiod reads it and tells a client.
func (t *trial) create(b *testing.B) {
	t.reader = startReader(b, t.cluster, t.size)
	t.reader.await(b, "a first word", func(map[string]uint32) bool { return true })
	t.figures["empty-load-istiod-s"] = t.spent(b).istiod.Seconds()
	t.figures["empty-istiod-rss-MB"] = resident(b, t.reader.istiod.Process)
	t.figures["empty-apiserver-rss-MB"] = resident(b, t.cluster.API.Process)
	t.apiHeap, t.istiodHeap = t.heaps(b)
	before, began := t.spent(b), time.Now()
	objects, _ := t.unwritten()
	t.write(b, objects, nil)
	written := time.Since(began)
	t.reader.awaitAll(b, t.size)
	arrived, after := time.Since(began), t.spent(b)

	t.figures["objects"] = float64(len(objects))
	t.figures["create-s"] = written.Seconds()
	t.figures["create-arrived-s"] = arrived.Seconds()
	t.figures["create-apiserver-s"] = (after.api - before.api).Seconds()
	t.figures["create-istiod-s"] = (after.istiod - before.istiod).Seconds()
	t.figures["apiserver-rss-MB"] = resident(b, t.cluster.API.Process)
	t.reader.stop()
}

// list has the API server tell everything.
func (t *trial) list(b *testing.B) {
	const times = 5
	before, bytes := cpu(b, t.cluster.API.Process), 0
	for range times {
		for kind := range resources {
			bytes += len(fetch(b, t.raw, t.url(kind, "")))
		}
	}
	t.figures["list-kB"] = float64(bytes) / times / 1000
	t.figures["list-apiserver-ms"] = (cpu(b, t.cluster.API.Process) - before).Seconds() * 1000 / times
}

// load starts an istiod when everything is there.
func (t *trial) load(b *testing.B) {
	t.reader = startReader(b, t.cluster, t.size)
	t.reader.awaitAll(b, t.size)
	t.figures["load-istiod-s"] = t.spent(b).istiod.Seconds()
	t.figures["istiod-rss-MB"] = resident(b, t.reader.istiod.Process)
	api, istiod := t.heaps(b)
	t.figures["apiserver-heap-MB"] = api - t.apiHeap
	t.figures["istiod-heap-MB"] = istiod - t.istiodHeap
}

// change makes changes of one endpoint each, the next when the one before has
// arrived. What the servers use without any is taken off.
func (t *trial) change(b *testing.B) {
	const (
		some = 10 * kinds
		rest = 8 * time.Second
	)
	<-time.After(rest / 2) // until all is quiet
	sent := t.watch(b)
	before := t.spent(b)
	<-time.After(rest)
	idle := t.spent(b).since(before).times(1 / rest.Seconds())

	sentBefore := sent.Load()
	before, began := t.spent(b), time.Now()
	var arrived sample
	writes := 0
	for n := range some {
		address, weight := t.step(n)
		objects, gone := t.unwritten()
		writes += len(objects) + len(gone)
		made := time.Now()
		t.write(b, objects, gone)
		t.reader.awaitWeight(b, address, weight)
		arrived = append(arrived, time.Since(made))
	}
	used := t.spent(b).since(before)
	idle = idle.times(time.Since(began).Seconds())
	t.figures["writes/change"] = float64(writes) / some
	t.figures["sent-kB/change"] = float64(sent.Load()-sentBefore) / some / 1000
	t.figures["apiserver-ms/change"] = (used.api - idle.api).Seconds() * 1000 / some
	t.figures["istiod-ms/change"] = (used.istiod - idle.istiod).Seconds() * 1000 / some
	t.figures["arrived-ms"] = arrived.ms(0.5)
	t.figures["idle-apiserver-ms/change"] = idle.api.Seconds() * 1000 / some
}

func (t *trial) spent(b *testing.B) spent {
	b.Helper()
	return spent{api: cpu(b, t.cluster.API.Process), istiod: cpu(b, t.reader.istiod.Process)}
}

func (s spent) since(before spent) spent {
	return spent{api: s.api - before.api, istiod: s.istiod - before.istiod}
}

func (s spent) times(f float64) spent {
	return spent{api: time.Duration(float64(s.api) * f), istiod: time.Duration(float64(s.istiod) * f)}
}

// write writes objects as the product does: by server-side apply, some at a time.
func (t *trial) write(b *testing.B, objects []*unstructured.Unstructured, gone []desired.Ref) {
	b.Helper()
	const atOnce = 8
	next := make(chan *unstructured.Unstructured)
	var writers sync.WaitGroup
	for range min(atOnce, len(objects)) {
		writers.Go(func() {
			for object := range next {
				if err := t.client.Apply(b.Context(), resources[desired.Kind(object.GetKind())], object); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, object := range objects {
		next <- object
	}
	close(next)
	writers.Wait()
	for _, ref := range gone {
		if err := t.client.Delete(b.Context(), resources[ref.Kind], ref.Namespace, ref.Name); err != nil {
			b.Error(err)
		}
	}
	if b.Failed() {
		b.FailNow()
	}
}

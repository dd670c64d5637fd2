package kubernetes_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

var cluster = kubernetes.Cluster{Domain: "cluster.local", Network: "n1", Name: "east"}

var shop = kubernetes.Name{Namespace: "shop", Name: "web"}

// known are places as a test says them.
type known struct {
	nodes   map[string]model.Locality
	pods    map[kubernetes.Name]kubernetes.Pod
	awaited map[string]bool // UIDs
}

func (k *known) Node(name string) (model.Locality, bool) {
	at, ok := k.nodes[name]
	return at, ok
}

func (k *known) Region(zone string) string {
	regions := []string{}
	for _, at := range k.nodes {
		if at.Zone == zone && zone != "" {
			regions = append(regions, at.Region)
		}
	}
	if len(regions) == 0 {
		return ""
	}
	return slices.Min(regions)
}

func (k *known) Pod(name kubernetes.Name) (kubernetes.Pod, bool) {
	p, ok := k.pods[name]
	return p, ok
}

func (k *known) Awaits(uid string) bool { return k.awaited[uid] }

// mirror holds what was taken, as a store does.
type mirror map[model.Ref]model.Record

func (m mirror) apply(t *rapid.T, change kubernetes.Change) {
	for _, o := range change.Upserts {
		m.remove(o.Record.Ref)
		m[o.Record.Ref] = o.Record
		for _, r := range o.Owned {
			if _, twice := m[r.Ref]; twice {
				t.Fatalf("%v comes twice in its object", r.Ref)
			}
			m[r.Ref] = r
		}
	}
	for _, ref := range change.Deletes {
		m.remove(ref)
	}
	for _, r := range change.OwnedUpserts {
		if old, has := m[r.Ref]; has && old.Spec.EqualSpec(r.Spec) {
			t.Fatalf("%v is changed, and says the same", r.Ref)
		}
		if _, has := m[r.Owner]; !has {
			t.Fatalf("%v has no owner", r.Ref)
		}
		m[r.Ref] = r
	}
	for _, ref := range change.OwnedDeletes {
		if _, has := m[ref]; !has {
			t.Fatalf("%v is deleted, and was not there", ref)
		}
		delete(m, ref)
	}
}

func (m mirror) remove(ref model.Ref) {
	maps.DeleteFunc(m, func(r model.Ref, rec model.Record) bool { return r == ref || rec.Owner == ref })
}

// Whatever changes in whatever order, what was taken is what the objects say.
func TestAnyHistoryEndsWithWhatTheObjectsSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{known: &known{map[string]model.Locality{}, map[kubernetes.Name]kubernetes.Pod{}, map[string]bool{}}, slices: map[string]*discoveryv1.EndpointSlice{}}
		group := kubernetes.NewGroup(cluster, shop, w.known, &w.index)
		got := mirror{}
		w.setService(t, group)
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			w.step(t, group)
			if rapid.Bool().Draw(t, "take") {
				before := maps.Clone(got)
				got.apply(t, group.Take())
				w.compare(t, before, got)
			}
		}
		before := maps.Clone(got)
		got.apply(t, group.Take())
		w.compare(t, before, got)
		listed := mirror{}
		for _, o := range group.Objects() {
			listed.apply(t, kubernetes.Change{Upserts: []model.Object{o}})
		}
		w.compare(t, got, listed)
	})
}

// world is a Service and its slices as an API server has them.
type world struct {
	*known
	service *corev1.Service
	slices  map[string]*discoveryv1.EndpointSlice
	shown   map[string]string // which instance each endpoint was of when it was taken last
	index   kubernetes.Index
	writes  int
}

func (w *world) step(t *rapid.T, group *kubernetes.Group) {
	w.writes++
	switch rapid.SampledFrom([]string{"slice", "slice", "slice", "slice", "slice", "again", "drop", "service", "gone", "pod", "await", "await", "node"}).Draw(t, "what") {
	case "slice":
		s := w.drawSlice(t)
		w.slices[s.Name] = s
		group.SetSlice(kubernetes.ReadSlice(s))
	case "again":
		if s := w.slices[rapid.SampledFrom(names).Draw(t, "name")]; s != nil {
			s = s.DeepCopy()
			s.ResourceVersion = strconv.Itoa(w.writes)
			w.slices[s.Name] = s
			group.SetSlice(kubernetes.ReadSlice(s))
		}
	case "drop":
		name := rapid.SampledFrom(names).Draw(t, "name")
		delete(w.slices, name)
		group.DropSlice(name)
	case "service":
		w.setService(t, group)
	case "gone":
		w.service = nil
		group.SetService(nil)
	case "pod":
		w.drawPod(t)
	case "await":
		uid := "uid-pod-" + strconv.Itoa(rapid.IntRange(1, 4).Draw(t, "pod"))
		w.awaited[uid] = !w.awaited[uid]
		for range w.index.PodChanged(uid) {
		}
	case "node":
		node := rapid.SampledFrom(nodes).Draw(t, "node")
		w.nodes[node] = model.Locality{Region: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "region"), Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
		for range w.index.NodeChanged(node) {
		}
		for _, zone := range zones {
			for range w.index.ZoneChanged(zone) {
			}
		}
	}
}

var (
	names = []string{"web-a", "web-b", "web-c"}
	nodes = []string{"node-1", "node-2"}
	zones = []string{"z1", "z2"}
)

func (w *world) setService(t *rapid.T, group *kubernetes.Group) {
	w.service = w.drawService(t)
	read := cluster.ReadService(w.service)
	group.SetService(&read)
}

func (w *world) drawService(t *rapid.T) *corev1.Service {
	families := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	if rapid.Bool().Draw(t, "v6") {
		slices.Reverse(families)
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name, ResourceVersion: strconv.Itoa(w.writes)},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.1", IPFamilies: families, PublishNotReadyAddresses: rapid.Bool().Draw(t, "publish"),
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 90}}[:rapid.IntRange(1, 2).Draw(t, "ports")],
		},
	}
	if rapid.Bool().Draw(t, "headless") {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

func (w *world) drawSlice(t *rapid.T) *discoveryv1.EndpointSlice {
	name := rapid.SampledFrom(names).Draw(t, "name")
	v6 := name == "web-c"
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shop.Namespace, Name: name, ResourceVersion: strconv.Itoa(w.writes),
			Labels: map[string]string{discoveryv1.LabelServiceName: shop.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if v6 {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	if rapid.Bool().Draw(t, "triggered") {
		at := time.Unix(int64(rapid.IntRange(1, 3).Draw(t, "trigger")), 0).UTC()
		s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
	}
	for _, port := range [][2]any{{"http", 8080}, {"admin", 8090}} {
		if rapid.Bool().Draw(t, "port") {
			number := int32(port[1].(int) + rapid.IntRange(0, 1).Draw(t, "number"))
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(port[0].(string)), Port: &number})
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, drawEndpoint(t, v6))
	}
	return s
}

func drawEndpoint(t *rapid.T, v6 bool) discoveryv1.Endpoint {
	n := rapid.IntRange(1, 4).Draw(t, "address")
	address := fmt.Sprintf("10.1.0.%d", n)
	if v6 {
		address = fmt.Sprintf("fd00::%d", n)
	}
	condition := rapid.SampledFrom([]*bool{nil, new(true), new(false)})
	e := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: condition.Draw(t, "ready"), Serving: condition.Draw(t, "serving"), Terminating: condition.Draw(t, "terminating")},
		NodeName:   new(rapid.SampledFrom(nodes).Draw(t, "on")),
	}
	if rapid.Bool().Draw(t, "zoned") {
		e.Zone = new(rapid.SampledFrom(zones).Draw(t, "in"))
	}
	if rapid.Bool().Draw(t, "pod") {
		name := "pod-" + strconv.Itoa(rapid.IntRange(1, 4).Draw(t, "pod"))
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: shop.Namespace, Name: name, UID: types.UID("uid-" + name)}
		e.Hostname = &name
	}
	return e
}

func (w *world) drawPod(t *rapid.T) {
	name := kubernetes.Name{Namespace: shop.Namespace, Name: "pod-" + strconv.Itoa(rapid.IntRange(1, 4).Draw(t, "pod"))}
	uid := "uid-" + name.Name
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		delete(w.pods, name)
	} else {
		w.pods[name] = kubernetes.Pod{
			Name: name, UID: uid, Account: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account"),
			Labels: model.MapOf(map[string]string{"app": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")}),
		}
	}
	for range w.index.PodChanged(uid) {
	}
}

// compare compares what was taken with what follows from the objects as they are, and from
// which endpoints there were.
func (w *world) compare(t *rapid.T, before, got mirror) {
	want := map[string]string{}
	if w.service != nil {
		want[shop.Ref().Name] = "service"
		for name, e := range w.served(before) {
			want[shop.Ref().Name+"/"+name] = e.spec
			if w.service.Spec.ClusterIP == corev1.ClusterIPNone && e.hostname != "" {
				want[shop.Ref().Name+":"+e.hostname] = "service"
				want[shop.Ref().Name+":"+e.hostname+"/"+name] = e.spec
			}
		}
	}
	have := map[string]string{}
	for ref, r := range got {
		have[ref.Name] = "service"
		if e, ok := r.Spec.(model.Endpoint); ok {
			have[ref.Name] = fmt.Sprintf("%+v", e)
		}
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Fatalf("taken is not what the objects say (-want +got):\n%s", diff)
	}
}

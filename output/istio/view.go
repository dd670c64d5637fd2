package istio

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
)

// view is our objects in the API server, followed by list and watch. It is kept whether or
// not this replica writes, so that the replica can take over at once.
type view struct {
	kinds    map[Kind]cache.SharedIndexInformer
	retired  map[Kind]*missing        // of the kinds that are no longer written
	observed func(old, now *Observed) // old or now may be nil

	mu      sync.Mutex
	failing string // why the API server cannot be followed; empty if it can
	since   time.Time
}

const byKey = "key"

// newView prepares to follow objects that carry both of our labels: of the written kinds,
// and of kinds that are no longer written.
func newView(target *rest.Config, instance string, c Config, log *slog.Logger, observed func(old, now *Observed)) (*view, error) {
	v := &view{kinds: map[Kind]cache.SharedIndexInformer{}, retired: map[Kind]*missing{}, observed: observed}
	for _, kind := range c.retired() {
		v.retired[kind] = newMissing(log)
	}
	target = rest.CopyConfig(target)
	target.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &patient{next: next, failed: v.fail, answered: v.recovered}
	})
	client, err := dynamic.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(marks(instance)))
	for _, kind := range slices.Concat(c.kinds(), c.retired()) {
		resource := schema.GroupVersionResource{Group: convert.Group, Version: convert.Version, Resource: kind.Resource()}
		informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0,
			cache.Indexers{byKey: indexByKey}, func(o *metav1.ListOptions) { o.LabelSelector = selector }).Informer()
		if err := v.follow(kind, informer); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *view) follow(kind Kind, informer cache.SharedIndexInformer) error {
	if err := informer.SetTransform(func(o any) (any, error) { return shorten(kind, o), nil }); err != nil {
		return err
	}
	failed := v.fail
	if m := v.retired[kind]; m != nil {
		failed = func(err error) { m.fail(kind, err) }
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failed(err) }); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { v.notify(nil, o) },
		UpdateFunc: func(old, now any) { v.notify(old, now) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			v.notify(o, nil)
		},
	})
	v.kinds[kind] = informer
	return err
}

// kept is an observed object as an informer keeps it.
type kept struct {
	metav1.ObjectMeta
	Observed
}

// shorten keeps the parts of an object that show whether it is in order.
func shorten(kind Kind, o any) any {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o
	}
	short := observedOf(kind, u)
	return &kept{Observed: short, ObjectMeta: metav1.ObjectMeta{
		Name: short.Name, Namespace: short.Namespace, UID: u.GetUID(), ResourceVersion: short.Version,
	}}
}

func observedOf(kind Kind, u *unstructured.Unstructured) Observed {
	o := Observed{
		Ref: Ref{kind, u.GetNamespace(), u.GetName()},
		UID: string(u.GetUID()), Version: u.GetResourceVersion(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		spec: fingerprintOf(u.Object["spec"]),
	}
	if kind == WorkloadEntry {
		entry := convert.WorkloadOutlineOf(u.Object["spec"])
		o.sockets, o.members = socketOf(entry), membersOf(entry)
		if _, own := o.Labels[labelService]; !own {
			labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "labels")
			o.labels = together(labels, o.Labels)
		}
	}
	if kind != ServiceEntry {
		return o
	}
	entry := convert.OutlineOf(u.Object["spec"])
	o.selector = entry.GetWorkloadSelector().GetLabels()
	o.sockets, o.members = socketsOf(entry), membersOf(entry)
	if _, written := o.Annotations[annotationService]; !written {
		o.ports = portNamesOf(entry)
		if hosts := entry.GetHosts(); len(hosts) > 0 {
			o.host = hosts[0]
		}
	}
	return o
}

func indexByKey(o any) ([]string, error) {
	k, ok := o.(*kept)
	if !ok {
		return nil, nil
	}
	return []string{k.key().String()}, nil
}

func (v *view) notify(old, now any) {
	of := func(o any) *Observed {
		if k, ok := o.(*kept); ok {
			return &k.Observed
		}
		return nil
	}
	v.observed(of(old), of(now))
}

func (v *view) fail(err error) {
	reason := explain(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failing == "" {
		v.since = time.Now()
	}
	v.failing = reason
}

func (v *view) recovered() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failing = ""
}

// trouble returns why the API server cannot be followed, and since when.
func (v *view) trouble() (string, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failing, v.since
}

// run follows until ctx ends, and waits for its goroutines.
func (v *view) run(ctx context.Context) {
	var informers sync.WaitGroup
	for _, informer := range v.kinds {
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	for kind, m := range v.retired {
		informers.Go(func() {
			select {
			case <-v.listed(kind):
				m.succeed()
			case <-ctx.Done():
			}
		})
	}
	informers.Wait()
}

// listed returns a channel that is closed once a kind has been listed.
func (v *view) listed(kind Kind) <-chan struct{} { return v.kinds[kind].HasSyncedChecker().Done() }

// object returns an own object.
func (v *view) object(r Ref) (Observed, bool) {
	o, ok, err := v.kinds[r.Kind].GetStore().GetByKey(r.Namespace + "/" + r.Name)
	if err != nil || !ok {
		return Observed{}, false
	}
	k, ok := o.(*kept)
	if !ok {
		return Observed{}, false
	}
	return k.Observed, true
}

// of returns the own objects of a key, in order. There may be thousands, so pointers are
// sorted instead of objects.
func (v *view) of(key Key) []Observed {
	var all []*kept
	for _, kind := range key.kinds() { // in the order of the kinds
		found, err := v.kinds[kind].GetIndexer().ByIndex(byKey, key.String())
		if err != nil {
			continue
		}
		first := len(all)
		for _, o := range found {
			if k, ok := o.(*kept); ok {
				all = append(all, k)
			}
		}
		slices.SortFunc(all[first:], func(a, b *kept) int { return strings.Compare(a.Name, b.Name) })
	}
	list := make([]Observed, len(all))
	for i, k := range all {
		list[i] = k.Observed
	}
	return list
}

// keys returns every key that has an own object.
func (v *view) keys() map[Key]struct{} {
	keys := map[Key]struct{}{}
	for _, informer := range v.kinds {
		for _, o := range informer.GetStore().List() {
			if k, ok := o.(*kept); ok {
				keys[k.key()] = struct{}{}
			}
		}
	}
	return keys
}

// count returns the number of own objects.
func (v *view) count() int {
	n := 0
	for _, informer := range v.kinds {
		n += len(informer.GetStore().ListKeys())
	}
	return n
}

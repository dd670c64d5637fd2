// Package view follows the objects of an instance in an API server by list and watch, and
// keeps their short form. It decides nothing. [View.Run] owns all goroutines, and any
// goroutine may read [Objects].
package view

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
)

// View follows our objects in the API server by list and watch. It does so whether or not
// this replica writes, so that the replica can take over at once.
type View struct {
	*observed.Objects
	kinds   map[object.Kind]cache.SharedIndexInformer
	told    map[object.Kind]cache.ResourceEventHandlerRegistration
	retired map[object.Kind]*missing // of the kinds that are no longer written
	marks   map[string]string        // of our objects
	changed func(old, now any)       // entries of a store, of which one may be nil

	mu      sync.Mutex
	failing string // why the API server cannot be followed; empty if it can
	since   time.Time
}

// New prepares to follow objects that carry both of our labels: of the written kinds,
// and of kinds that are no longer written. If DestinationRules are written, those of all
// owners are followed.
func New(target *rest.Config, instance string, kinds, retired []object.Kind, log *slog.Logger, changed func(old, now any)) (*View, error) {
	v := &View{
		Objects: &observed.Objects{Stores: map[object.Kind]cache.Indexer{}}, kinds: map[object.Kind]cache.SharedIndexInformer{},
		told: map[object.Kind]cache.ResourceEventHandlerRegistration{}, retired: map[object.Kind]*missing{},
		marks: object.Marks(instance), changed: changed,
	}
	for _, kind := range retired {
		v.retired[kind] = newMissing(log)
	}
	target = rest.CopyConfig(target)
	target.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &apiserver.Patient{Next: next, Failed: v.fail, Answered: v.recovered}
	})
	client, err := dynamic.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	for _, kind := range slices.Concat(kinds, retired) {
		selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(v.marks))
		if kind == object.DestinationRule && v.retired[kind] == nil {
			selector = ""
		}
		resource := schema.GroupVersionResource{Group: convert.Group, Version: convert.Version, Resource: kind.Resource()}
		informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0,
			observed.Index(), func(o *metav1.ListOptions) { o.LabelSelector = selector }).Informer()
		if err := v.follow(kind, informer); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *View) follow(kind object.Kind, informer cache.SharedIndexInformer) error {
	if err := informer.SetTransform(func(o any) (any, error) { return observed.Shorten(kind, v.marks, o), nil }); err != nil {
		return err
	}
	failed := v.fail
	if m := v.retired[kind]; m != nil {
		failed = func(err error) { m.fail(kind, err) }
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failed(err) }); err != nil {
		return err
	}
	told, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { v.changed(nil, o) },
		UpdateFunc: v.changed,
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			v.changed(o, nil)
		},
	})
	v.kinds[kind], v.told[kind], v.Stores[kind] = informer, told, informer.GetIndexer()
	return err
}

func (v *View) fail(err error) {
	reason := apiserver.Explain(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failing == "" {
		v.since = time.Now()
	}
	v.failing = reason
}

func (v *View) recovered() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failing = ""
}

// Trouble returns why the API server cannot be followed, and since when.
func (v *View) Trouble() (string, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failing, v.since
}

// Run follows until ctx ends, and waits for its goroutines.
func (v *View) Run(ctx context.Context) {
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

// listed returns a channel that is closed once a kind has been listed, and its listed objects
// have been reported as changed. So a report after that is of a later change.
func (v *View) listed(kind object.Kind) <-chan struct{} {
	return v.told[kind].HasSyncedChecker().Done()
}

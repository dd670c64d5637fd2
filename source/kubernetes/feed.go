package kubernetes

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// feed lists and watches one kind, and asks the API server when the watch is silent.
type feed struct {
	kind
	into  *state
	woken chan<- struct{} // of the run

	mu     sync.Mutex
	err    error     // why the kind cannot be read now; nil if it can
	byList bool      // the error is of a list, not of a watch
	since  time.Time // start of the failure

	reception
}

// run follows the kind until ctx ends. The reflector lists, watches, resumes, and
// lists again if it cannot resume.
func (f *feed) run(ctx context.Context) {
	silent := klog.Logger{} // the run reports errors
	r := cache.NewReflectorWithOptions(&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example(), f,
		cache.ReflectorOptions{
			Logger: &silent, Name: f.name(),
			Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second},
		})
	r.RunWithContext(klog.NewContext(ctx, silent))
}

// wake has the run look for changes.
func (f *feed) wake() {
	select {
	case f.woken <- struct{}{}:
	default: // the run is going to look anyway
	}
}

// longest is how long the API server may take to answer a list.
const longest = 60 * time.Second

func (f *feed) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		// "0" allows any age: even older than the records that an earlier run has stored.
		options.ResourceVersion = ""
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	list, err := f.api.List(limited, options)
	if options.Continue != "" && apierrors.IsResourceExpired(err) {
		return list, err // the rest of the list has expired; the reflector lists everything at once next
	}
	f.answered(ctx, err, true)
	return list, err
}

func (f *feed) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if _, deaf := f.isDeaf(); deaf && options.SendInitialEvents != nil {
		return nil, apierrors.FromObject(listAnew.Object) // it would deliver nothing
	}
	w, err := f.begin(ctx, options)
	if options.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		return w, err // the API server does not begin watches with a list; the reflector lists next
	}
	if hasExpired(err) {
		return w, err // a list comes next
	}
	if err != nil {
		f.answered(ctx, err, false)
	}
	return w, err // a watch that has begun reports itself whether it goes on
}

func hasExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// answered notes whether the API server answers for the kind, by a list or a watch. A
// successful list does not clear the error of a watch.
func (f *feed) answered(ctx context.Context, err error, byList bool) {
	if ctx.Err() != nil {
		return // the run itself ends
	}
	f.mu.Lock()
	was := f.err
	switch {
	case err == nil && byList && !f.byList:
		f.mu.Unlock()
		return
	case err == nil && was == nil:
	case err == nil:
		f.err, f.byList = nil, false
		f.asking = time.Now() // a question that failed before is asked once more
	case was == nil:
		f.err, f.byList, f.since = err, byList, time.Now()
	default:
		f.err, f.byList = err, byList
	}
	f.mu.Unlock()
	if (was == nil) != (err == nil) || apierrors.ReasonForError(was) != apierrors.ReasonForError(err) || !f.isListed() {
		f.wake()
	}
}

// failing returns why the kind cannot be read, and since when; err is nil if it can.
func (f *feed) failing() (since time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return f.asking, f.unanswered
	}
	return f.since, f.err
}

func (f *feed) isListed() bool { return f.into.isListed(f.part()) }

var (
	_ cache.TransformingStore      = (*feed)(nil)
	_ cache.ResourceVersionUpdater = (*feed)(nil)
)

// Add implements [cache.ReflectorStore].
func (f *feed) Add(object any) error {
	f.counts(+1)
	return f.put(object)
}

// Update implements [cache.ReflectorStore].
func (f *feed) Update(object any) error { return f.put(object) }

func (f *feed) put(item any) error {
	f.into.change(f.resource, f.objectOf(item), time.Now())
	f.wake()
	return nil
}

// Delete implements [cache.ReflectorStore].
func (f *feed) Delete(item any) error {
	f.counts(-1)
	o := f.objectOf(item)
	o.content = nil
	f.into.change(f.resource, o, time.Now())
	f.wake()
	return nil
}

// Replace implements [cache.ReflectorStore].
func (f *feed) Replace(items []any, version string) error {
	f.lists(len(items), version)
	objects := make([]object, len(items))
	for i, item := range items {
		objects[i] = f.objectOf(item)
		items[i] = nil // a large list need not be in memory twice
	}
	f.into.replace(f.part(), objects, time.Now())
	f.wake()
	return nil
}

// Transformer implements [cache.TransformingStore]. The reflector holds a whole list
// in memory before it passes it on: each object is reduced to its kept part at once.
func (f *feed) Transformer() cache.TransformFunc {
	return func(item any) (any, error) { return f.objectOf(item), nil }
}

// objectOf returns the kept part of an object of the API server.
func (f *feed) objectOf(item any) object {
	if o, read := item.(object); read {
		return o
	}
	if last, ok := item.(cache.DeletedFinalStateUnknown); ok {
		item = last.Obj
	}
	m, err := meta.Accessor(item)
	if err != nil {
		return object{} // no object of an API server
	}
	return object{convert.Name{Namespace: m.GetNamespace(), Name: m.GetName()}, f.read(item)}
}

// Resync implements [cache.ReflectorStore].
func (f *feed) Resync() error { return nil }

package write

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/lease"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// Remote writes to the API server. Every write has a precondition: a created object must
// not exist, any other must have the expected uid and version. A replica that was paused in
// mid-write therefore cannot undo its successor's writes.
type Remote struct {
	client rest.Interface
	pace   *pace
}

// Permit takes the right to one write, or otherwise returns when there will be one.
func (r *Remote) Permit(now time.Time) (ok bool, at time.Time) { return r.pace.take(now) }

// grace is how long a write in progress may take after the right to write has ended. It is
// shorter than the time between a leader's last attempt to renew its lease and the end of
// the lease.
const grace = 4 * time.Second

// longest bounds the time of a write in the API server, so that an unanswered write does
// not block a worker for ever.
const longest = 30 * time.Second

// begin starts a write that has its right. The returned context outlives ctx by the grace:
// waiting for a sent write is better than letting it arrive later.
func (r *Remote) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	stop := context.AfterFunc(ctx, func() {
		limit := time.NewTimer(grace)
		defer limit.Stop()
		select {
		case <-limit.C:
			cancel()
		case <-write.Done():
		}
	})
	return write, func() { stop(); cancel() }, nil
}

// NewRemote returns a remote that sends nothing while open returns an error.
func NewRemote(config *rest.Config, qps float64, burst int, open func() error) (*Remote, error) {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return lease.Fenced{Next: next, Open: open} })
	c.QPS = -1 // the pace is our own, because a wait must not outlast the right to write
	c.APIPath = "/apis"
	c.GroupVersion = &schema.GroupVersion{Group: convert.Group, Version: convert.Version}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	return &Remote{client, newPace(qps, burst)}, nil
}

// absent is the version of an object that does not exist. The API server treats the write
// as a creation, and fails it if the object exists.
const absent = "0"

// create creates an object that must not exist.
func (r *Remote) create(ctx context.Context, o object.Object) (object.Observed, error) {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return object.Observed{}, err
	}
	defer end()
	u, err := r.apply(ctx, o, map[string]any{"resourceVersion": absent})
	if err != nil {
		return object.Observed{}, err
	}
	return object.Observe(o.Kind, u), nil
}

// update writes an object over its observed version, and returns its new state.
func (r *Remote) update(ctx context.Context, o object.Object, have object.Observed) (object.Observed, error) {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return object.Observed{}, err
	}
	defer end()
	if have.IsForeign() { // a plain apply would unite other owners' fields with ours
		return r.takeOver(ctx, o, have, false)
	}
	u, err := r.apply(ctx, o, map[string]any{"resourceVersion": have.Version, "uid": have.UID})
	if rejected(err) {
		return r.takeOver(ctx, o, have, true)
	}
	if err != nil {
		return object.Observed{}, err
	}
	return r.complete(ctx, o, u)
}

// apply writes our fields of an object, under the precondition.
func (r *Remote) apply(ctx context.Context, o object.Object, precondition map[string]any) (*unstructured.Unstructured, error) {
	manifest := o.Manifest()
	if metadata, ok := manifest["metadata"].(map[string]any); ok {
		maps.Copy(metadata, precondition)
	}
	body, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	return answer(r.of(r.client.Patch(types.ApplyPatchType), o.Ref()).
		Param("fieldManager", object.FieldManager).Param("force", "true").Body(body).Do(ctx))
}

// Get reads an object of any owner.
func (r *Remote) Get(ctx context.Context, ref object.Ref) (*unstructured.Unstructured, error) {
	return answer(r.of(r.client.Get(), ref).Do(ctx))
}

// page is the number of objects requested from the API server at a time.
const page = "500"

// Each reads all objects of a kind, of any owner, in a namespace or, if that is empty, in
// all namespaces.
func (r *Remote) Each(ctx context.Context, kind object.Kind, namespace string, do func(*unstructured.Unstructured)) error {
	for next := ""; ; {
		request := r.client.Get().Namespace(namespace).Resource(kind.Resource()).Param("limit", page)
		if next != "" {
			request = request.Param("continue", next)
		}
		body, err := request.Do(ctx).Raw()
		if err != nil {
			return fmt.Errorf("listing all %s: %s", kind.Resource(), apiserver.Explain(err))
		}
		list := &unstructured.UnstructuredList{}
		if err := list.UnmarshalJSON(body); err != nil {
			return fmt.Errorf("the API server's list of all %s cannot be parsed: %w", kind.Resource(), err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// Selecting reads the ServiceEntries of a namespace that have a selector.
func (r *Remote) Selecting(ctx context.Context, namespace string) (all []plan.Selecting, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err = r.Each(ctx, object.ServiceEntry, namespace, func(u *unstructured.Unstructured) {
		if selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "workloadSelector", "labels"); len(selector) > 0 {
			all = append(all, plan.Selecting{Ref: object.Ref{Kind: object.ServiceEntry, Namespace: namespace, Name: u.GetName()}, Selector: selector})
		}
	})
	return all, err
}

// delete deletes the observed object, and no other of that name.
func (r *Remote) delete(ctx context.Context, have object.Observed) error {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	body, err := json.Marshal(map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1",
		"preconditions": map[string]any{"uid": have.UID, "resourceVersion": have.Version},
	})
	if err != nil {
		return err
	}
	err = r.of(r.client.Delete(), have.Ref).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// of directs a request at an object. The client does not repeat it: the key is retried in
// its own time, and delays no other.
func (r *Remote) of(request *rest.Request, ref object.Ref) *rest.Request {
	return request.Namespace(ref.Namespace).Resource(ref.Kind.Resource()).Name(ref.Name).MaxRetries(0)
}

func answer(result rest.Result) (*unstructured.Unstructured, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("the API server's response cannot be parsed: %w", err)
	}
	return u, nil
}

package kubernetes

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// kind is a kind of object that is read.
type kind struct {
	resource  string // as in paths of the API
	namespace string // the only one it is read in; empty for all, and for cluster-wide kinds
	required  bool
	optional  bool   // clusters usually do without it: its absence is reported only while records of it are stored
	off       string // how a setting disables the kind; empty if it is always read
	example   func() runtime.Object
	api       api
	// read reduces an object to its kept part. The function uses no shared state.
	read func(object any) any
}

func (k *kind) part() part { return part{k.resource, k.namespace} }

// name returns the name for people.
func (k *kind) name() string {
	if k.namespace == "" {
		return k.resource
	}
	return k.resource + " of " + k.namespace
}

// api lists and watches.
type api interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// kinds returns all kinds that are read of a cluster. With configured namespaces,
// each is requested separately, so that rights in these namespaces are enough.
func (c *Config) kinds(target *rest.Config, through http.RoundTripper) ([]kind, error) {
	requests := &http.Client{Transport: noting{through}}
	core, err := client(target, requests, corev1.SchemeGroupVersion, "/api")
	if err != nil {
		return nil, err
	}
	discovery, err := client(target, requests, discoveryv1.SchemeGroupVersion, "/apis")
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(target, requests)
	if err != nil {
		return nil, err
	}
	list := []kind{{
		resource: nodes, example: func() runtime.Object { return &corev1.Node{} },
		api:  typed{core, nodes, "", func() runtime.Object { return &corev1.NodeList{} }},
		read: func(o any) any { return readAs(o, func(n *corev1.Node) any { return convert.ReadNode(n) }) },
	}}
	for _, namespace := range c.namespaces() {
		list = append(list, c.kindsIn(namespace, core, discovery, objects)...)
	}
	return list, nil
}

// kindsIn returns the namespaced kinds, for one namespace or for all.
func (c *Config) kindsIn(namespace string, core, discovery rest.Interface, objects dynamic.Interface) []kind {
	cluster := c.cluster()
	list := []kind{{
		resource: services, namespace: namespace, required: true, example: func() runtime.Object { return &corev1.Service{} },
		api:  typed{core, services, namespace, func() runtime.Object { return &corev1.ServiceList{} }},
		read: func(o any) any { return readAs(o, func(s *corev1.Service) any { return cluster.ReadService(s) }) },
	}, {
		resource: endpointSlices, namespace: namespace, required: true, example: func() runtime.Object { return &discoveryv1.EndpointSlice{} },
		api: typed{discovery, endpointSlices, namespace, func() runtime.Object { return &discoveryv1.EndpointSliceList{} }},
		read: func(o any) any {
			return readAs(o, func(s *discoveryv1.EndpointSlice) any { return convert.ReadSlice(s) })
		},
	}}
	if c.Pods {
		list = append(list, kind{
			resource: pods, namespace: namespace, off: "set pods: false", example: func() runtime.Object { return &corev1.Pod{} },
			api:  typed{core, pods, namespace, func() runtime.Object { return &corev1.PodList{} }},
			read: func(o any) any { return readAs(o, func(p *corev1.Pod) any { return convert.ReadPod(p) }) },
		})
	}
	for _, of := range c.definitions() {
		off, api := "set istio: false", &untyped{client: objects, of: of, namespace: namespace}
		switch {
		case of.IsSMI():
			off, api.groups = "set smi: false", discovery
		case !of.IsRead():
			off = "leave " + of.Name + " out of carry"
		}
		list = append(list, kind{
			resource: of.Resource(), namespace: namespace, optional: of.IsSMI(), off: off, example: func() runtime.Object { return &unstructured.Unstructured{} },
			api: api,
			read: func(o any) any {
				return readAs(o, func(u *unstructured.Unstructured) any { return readObject(u, cluster.Domain) })
			},
		})
	}
	return list
}

// Resources of the API.
const (
	services       = "services"
	endpointSlices = "endpointslices"
	nodes          = "nodes"
	pods           = "pods"
)

// readAs reads an object, in whichever form the reflector passes it.
func readAs[T any](object any, read func(T) any) any {
	if typed, ok := object.(T); ok {
		return read(typed)
	}
	return nil
}

func readObject(u *unstructured.Unstructured, domain string) any {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil
	}
	reading := istio.FromJSON(text, domain)
	if spec, is := reading.Spec.(model.Workload); is && spec.Endpoint.Registered == 0 {
		spec.Endpoint.Registered = max(spec.Created.UnixMilli(), 0) // the API server vouches for it
		reading.Spec = spec
	}
	return reading
}

// client returns a client for one group of an API, in the protobuf encoding.
func client(target *rest.Config, requests *http.Client, group schema.GroupVersion, path string) (rest.Interface, error) {
	c := rest.CopyConfig(target)
	c.APIPath, c.GroupVersion = path, &group
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.ContentType = runtime.ContentTypeProtobuf
	c.QPS = -1 // only lists and watches are requested, at a pace of their own
	return rest.RESTClientForConfigAndClient(c, requests)
}

// typed reads objects with compiled-in types.
type typed struct {
	client    rest.Interface
	resource  string
	namespace string // as in [kind]
	empty     func() runtime.Object
}

func (t typed) get() *rest.Request {
	return t.client.Get().NamespaceIfScoped(t.namespace, t.namespace != "").Resource(t.resource)
}

func (t typed) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := t.empty()
	err := t.get().VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(list)
	return list, err
}

func (t typed) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return t.get().VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
}

// untyped reads objects of Istio and SMI, in the newest version that the API server has. It
// belongs to one goroutine.
type untyped struct {
	client    dynamic.Interface
	groups    rest.Interface // to ask first whether the API server has the group; nil: it is not asked
	of        istio.Definition
	namespace string // as in [kind]
	version   int    // index in the versions of the kind of the last answered one
}

func (u *untyped) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := inSomeVersion(ctx, u, func(r dynamic.ResourceInterface) (*unstructured.UnstructuredList, error) { return r.List(ctx, options) })
	if list == nil {
		return nil, err // without the type of a list
	}
	return list, err
}

func (u *untyped) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return inSomeVersion(ctx, u, func(r dynamic.ResourceInterface) (watch.Interface, error) { return r.Watch(ctx, options) })
}

func inSomeVersion[T any](ctx context.Context, u *untyped, ask func(dynamic.ResourceInterface) (T, error)) (answer T, err error) {
	if u.groups != nil {
		// An API server forbids a request without rights whether or not it has the kind. It tells
		// each client which groups it has.
		if err := u.groups.Get().AbsPath("/apis", u.of.Group).Do(ctx).Error(); apierrors.IsNotFound(err) {
			return answer, err
		}
	}
	versions := u.of.Versions()
	for i := range versions {
		at := (u.version + i) % len(versions)
		answer, err = ask(u.client.Resource(schema.GroupVersionResource{Group: u.of.Group, Version: versions[at], Resource: u.of.Resource()}).Namespace(u.namespace))
		if !apierrors.IsNotFound(err) {
			if err == nil {
				u.version = at
			}
			return answer, err
		}
	}
	return answer, err
}

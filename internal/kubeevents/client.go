package kubeevents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
)

// Client writes Events to one API server.
type Client struct {
	instance string
	objects  metadata.Interface
	events   core.EventsGetter
}

// component is the reporter of all Events.
const component = "isthmus"

// NewClient returns a client for requests through a transport, with the name of the Isthmus
// that reports.
func NewClient(target *rest.Config, through http.RoundTripper, instance string) (*Client, error) {
	target, requests := rest.CopyConfig(target), &http.Client{Transport: through, Timeout: answers}
	target.QPS = -1 // the recorder has a rate of its own
	objects, err := metadata.NewForConfigAndClient(target, requests)
	if err != nil {
		return nil, err
	}
	events, err := core.NewForConfigAndClient(target, requests)
	return &Client{instance, objects, events}, err
}

// answers is how long the API server may take to answer.
const answers = 30 * time.Second

// write writes an Event about an object, if the object exists.
func (c *Client) write(ctx context.Context, e Event, correlator *record.EventCorrelator) error {
	about, err := c.find(ctx, e.Object)
	if err != nil || about.UID == "" {
		return err
	}
	result, err := correlator.EventCorrelate(c.event(e, about))
	if err != nil || result.Skip {
		return err
	}
	now, err := c.put(ctx, result, e.Old)
	if err == nil {
		correlator.UpdateState(now)
	}
	return err
}

// put creates an Event, or counts it in the existing one.
func (c *Client) put(ctx context.Context, r *record.EventCorrelateResult, old bool) (now *corev1.Event, err error) {
	events := c.events.Events(r.Event.Namespace)
	if r.Event.Count > 1 {
		now, err = events.PatchWithEventNamespaceWithContext(ctx, r.Event, r.Patch)
		if !apierrors.IsNotFound(err) {
			return now, err
		}
	}
	r.Event.ResourceVersion, r.Event.Count = "", 1 // also if a write has failed before
	now, err = events.CreateWithEventNamespaceWithContext(ctx, r.Event)
	if !apierrors.IsAlreadyExists(err) {
		return now, err
	}
	if old {
		return r.Event, nil
	}
	patch, err := json.Marshal(map[string]any{"lastTimestamp": r.Event.LastTimestamp})
	if err != nil {
		return nil, err
	}
	return events.PatchWithEventNamespaceWithContext(ctx, r.Event, patch)
}

// versions are the versions of objects, the preferred ones first.
var versions = [...]string{"v1", "v1beta1", "v1alpha4", "v1alpha3", "v1alpha2", "v1alpha1"}

// find returns a reference to an object with its UID, by which describing it looks up Events.
// There is no UID if the object does not exist. It takes the right to list, as reading does.
func (c *Client) find(ctx context.Context, o Object) (about corev1.ObjectReference, err error) {
	only := metav1.ListOptions{FieldSelector: "metadata.name=" + o.Name, Limit: 1}
	for _, version := range versions {
		group := schema.GroupVersion{Group: o.Group, Version: version}
		list, err := c.objects.Resource(group.WithResource(o.Resource)).Namespace(o.Namespace).List(ctx, only)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil || len(list.Items) == 0:
			return about, err
		}
		return corev1.ObjectReference{
			APIVersion: group.String(), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: list.Items[0].UID,
		}, nil
	}
	return about, nil
}

// longest is the number of bytes of a message that the API allows.
const longest = 1024

func (c *Client) event(e Event, about corev1.ObjectReference) *corev1.Event {
	now := metav1.Now()
	kind := corev1.EventTypeNormal
	if e.warning {
		kind = corev1.EventTypeWarning
	}
	if len(e.Message) > longest {
		e.Message = strings.ToValidUTF8(e.Message[:longest-len("…")], "") + "…"
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: e.Namespace, Name: c.name(e, about.UID)},
		InvolvedObject: about, Type: kind, Reason: e.Reason, Message: e.Message,
		Source: corev1.EventSource{Component: component}, ReportingController: component, ReportingInstance: c.instance,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// name returns the name of an Event, which depends on its content alone.
func (c *Client) name(e Event, uid types.UID) string {
	h := fnv.New64a()
	for _, part := range []string{cmp.Or(c.instance, component), e.Kind, string(uid), e.Reason, e.Message} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return util.GenerateEventName(e.Name, int64(h.Sum64()&math.MaxInt64)) //nolint:gosec // it fits
}

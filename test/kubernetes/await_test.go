package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A new endpoint is kept back while its pod cannot be read, and is served without it after
// five seconds.
func TestPodsOfNewEndpointsAreAwaited(t *testing.T) {
	t.Parallel()
	const namespace = "awaited"
	client, w := connect(t, shared), newWay(t, shared.API)
	uid := place(t, client, namespace)
	m := mirror(t, w.Kubeconfig(t))
	m.awaitState(source.StateLive)
	endpoints := []any{onPod("10.1.0.1", namespace, "pod", uid)}
	write := func(more ...map[string]any) time.Time {
		t.Helper()
		for _, e := range more {
			endpoints = append(endpoints, e)
		}
		slice := object(t, webSlice, namespace)
		slice.Object["endpoints"] = slices.Clone(endpoints)
		at := time.Now()
		if err := client.Apply(t.Context(), slicesOf, slice); err != nil {
			t.Fatal(err)
		}
		return at
	}
	// withPod adds an endpoint with a new pod, and awaits one without a pod beside it.
	withPod := func(name, address, beside string) time.Time {
		t.Helper()
		pod := object(t, "%s", strings.Replace(labelledPod, "name: pod", "name: "+name, 1))
		pod.SetNamespace(namespace)
		if err := client.Apply(t.Context(), podsOf, pod); err != nil {
			t.Fatal(err)
		}
		pod, err := client.Get(t.Context(), podsOf, namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		at := write(onPod(address, namespace, name, string(pod.GetUID())), map[string]any{"addresses": []any{beside}})
		await(t, "the endpoint beside it", func() error { return labelled(m, namespace, beside, "") })
		return at
	}

	w.Fail(failing, "pods")
	at := withPod("second", "10.1.0.2", "10.1.0.3")
	if e, is := m.endpoints(namespace)["10.1.0.2"]; is && time.Since(at) < 3*time.Second {
		t.Errorf("there is %v", e)
	}
	w.Fail(none, "")
	await(t, "the endpoint with its pod", func() error {
		r, is := m.endpoints(namespace)["10.1.0.2"]
		err := isLabelled(r, is, "web")
		if err != nil && is && time.Since(at) < 3*time.Second {
			t.Fatalf("it is there without its pod: %v", err)
		}
		return err
	})

	w.Fail(failing, "pods")
	at = withPod("third", "10.1.0.4", "10.1.0.5")
	await(t, "the endpoint without its pod", func() error { return labelled(m, namespace, "10.1.0.4", "") })
	if after := time.Since(at); after < 3*time.Second {
		t.Errorf("it came after %s", after)
	}
	w.Fail(none, "")
	await(t, "its pod", func() error { return labelled(m, namespace, "10.1.0.4", "web") })
}

// labelled says whether an endpoint is there with a value of the label "app".
func labelled(m *mirrored, namespace, address, want string) error {
	r, is := m.endpoints(namespace)[address]
	return isLabelled(r, is, want)
}

func isLabelled(r model.Record, is bool, want string) error {
	e, _ := r.Spec.(model.Endpoint)
	if app, _ := e.Labels.Get("app"); !is || app != want {
		return fmt.Errorf("%t: it is %+v", is, e)
	}
	return nil
}

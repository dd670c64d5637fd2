package kubernetes_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

const toldRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %s, name: reporter}
rules: [{apiGroups: [""], resources: [events], verbs: [create, patch]}]
`

const toldRoleIsReaders = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %s, name: reporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reporter}
subjects: [{kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}]
`

// toldEntry is a ServiceEntry that the API server takes, whatever the address. It is invalid
// for Istio and for Isthmus unless the address is an IP address.
const toldEntry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {namespace: %s, name: %s}
spec: {hosts: [%[2]s.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: %[3]q}]}
`

// logged is a log to read.
type logged struct {
	t  testing.TB
	mu sync.Mutex
	strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.t.Output().Write(line)
	return l.Builder.Write(line)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), text)
}

// told reads objects and the Events about them, as kubectl describe does.
type told struct {
	t      *testing.T
	client *cluster.Client
	typed  *clients.Clientset
}

// apply writes a ServiceEntry.
func (o *told) apply(namespace, name, address string) {
	o.t.Helper()
	if err := o.client.Apply(o.t.Context(), cluster.ServiceEntries, object(o.t, toldEntry, namespace, name, address)); err != nil {
		o.t.Fatal(err)
	}
}

// of returns the Events about a ServiceEntry, as sorted texts.
func (o *told) of(namespace, name string) (list []string, err error) {
	entry, err := o.client.Get(o.t.Context(), cluster.ServiceEntries, namespace, name)
	if err != nil {
		return nil, err
	}
	found, err := o.typed.CoreV1().Events(namespace).SearchWithContext(o.t.Context(), scheme.Scheme, &corev1.ObjectReference{
		APIVersion: entry.GetAPIVersion(), Kind: entry.GetKind(), Namespace: namespace, Name: name, UID: entry.GetUID(),
	})
	if err != nil {
		return nil, err
	}
	for _, e := range found.Items {
		list = append(list, fmt.Sprintf("%s %s x%d by %s: %s", e.Type, e.Reason, e.Count, e.Source.Component, e.Message))
	}
	slices.Sort(list)
	return list, nil
}

// await waits for the Events about a ServiceEntry: each begins and ends with such texts.
func (o *told) await(namespace, name string, want ...[2]string) {
	o.t.Helper()
	await(o.t, "the Events about "+name, func() error {
		list, err := o.of(namespace, name)
		for i, w := range want {
			if err == nil && (len(list) != len(want) || !strings.HasPrefix(list[i], w[0]) || !strings.HasSuffix(list[i], w[1])) {
				err = fmt.Errorf("they are %q, want %q", list, want)
			}
		}
		return err
	})
}

// A rejected object has one Event with the reason, however often it is listed and whichever
// process reads it, and another one once it is valid again. Where Events may not be written,
// one line in the log says so, and everything else works.
func TestRejectionsAreEventsOfTheObject(t *testing.T) {
	t.Parallel()
	c := own(t)
	config, err := c.API.Config(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := clients.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	o := &told{t, connect(t, c), typed}
	for _, namespace := range []string{"mute-1", "mute-2", "told"} {
		if err := o.client.Namespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			o.client.Apply(t.Context(), roles, object(t, role, namespace, "serviceentries,")),
			o.client.Apply(t.Context(), roleBindings, object(t, roleIsReaders, namespace)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		o.apply(namespace, "first", "10.0.0.1")
	}
	if err := errors.Join(
		o.client.Apply(t.Context(), roles, object(t, toldRole, "told")), o.client.Apply(t.Context(), roleBindings, object(t, toldRoleIsReaders, "told")),
	); err != nil {
		t.Fatal(err)
	}
	log := &logged{t: t}
	inNamespaces := func(c *kubernetes.Config) {
		c.Namespaces, c.Events = []string{"mute-1", "mute-2", "told"}, new(true)
	}
	m := mirrorTo(t, store.NewMemory(store.Config{}), log, kubeconfig(t, c.API, "reader"), inNamespaces)
	m.awaitState(source.StateLive)

	// The queue is in order, so once the last object has its Event, all others are done.
	for _, namespace := range []string{"mute-1", "mute-2", "told"} {
		o.apply(namespace, "first", "no address")
		m.awaitRejected("ServiceEntry "+namespace+"/first", "address")
	}
	rejected := [2]string{"Warning Rejected x1 by isthmus: source k8s: spec.endpoints[0].address: ", "; its last good version stays"}
	o.await("told", "first", rejected)
	if n := log.count("verbs: [create, patch]"); n != 1 {
		t.Errorf("the missing right is logged %d times", n)
	}
	for _, namespace := range []string{"mute-1", "mute-2"} {
		if list, err := o.of(namespace, "first"); err != nil || len(list) > 0 {
			t.Errorf("without the right: %q, %v", list, err)
		}
		o.apply(namespace, "first", "10.0.0.2")
		await(t, "an endpoint of "+namespace, func() error {
			if r := m.records(namespace); !strings.Contains(fmt.Sprint(r), "10.0.0.2") {
				return fmt.Errorf("there is %v", r)
			}
			return nil
		})
	}

	c.API.Kill() // all is listed anew
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.awaitState(source.StateLive)
	o.apply("told", "second", "no address")
	o.await("told", "second", [2]string{"Warning Rejected x1 ", ""})
	o.await("told", "first", rejected)
	before, err := typed.CoreV1().Events("told").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// Another process reads the cluster, with the records of the one before.
	m.stop()
	next := mirrorInto(t, m.store, kubeconfig(t, c.API, "reader"), inNamespaces)
	next.awaitState(source.StateLive)
	o.apply("told", "third", "no address")
	o.await("told", "third", [2]string{"Warning Rejected x1 ", ""})
	for i := range before.Items {
		e, err := typed.CoreV1().Events("told").Get(t.Context(), before.Items[i].Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&before.Items[i], e); diff != "" {
			t.Errorf("the next process has changed an Event (-before +after)\n%s", diff)
		}
	}
	o.await("told", "first", rejected)

	o.apply("told", "first", "10.0.0.2")
	o.await("told", "first", [2]string{"Normal Accepted x1 ", ": it is valid again"}, rejected)
	o.apply("told", "first", "no address")
	rejected[0] = strings.Replace(rejected[0], "x1", "x2", 1)
	o.await("told", "first", [2]string{"Normal Accepted x1 ", ""}, rejected)
}

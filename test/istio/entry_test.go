package istio_test

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

type fields = map[string]any

// entry is a ServiceEntry, with what a test changes in it.
type entry struct{ *unstructured.Unstructured }

func (e entry) spec() fields {
	spec, _ := e.Object["spec"].(fields)
	return spec
}

func (e entry) list(field string) []any {
	list, _ := e.spec()[field].([]any)
	return list
}

func (e entry) at(field string, index int) fields {
	item, _ := e.list(field)[index].(fields)
	return item
}

func (e entry) port(index int) fields     { return e.at("ports", index) }
func (e entry) endpoint(index int) fields { return e.at("endpoints", index) }

func (e entry) add(field string, item any) { e.spec()[field] = append(e.list(field), item) }

func (e entry) annotate(name, value string) {
	annotations := e.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	e.SetAnnotations(annotations)
}

// earlier is the specification that the earlier bridge gives the service.
func (e entry) earlier() fields {
	o, err := object(fmt.Sprintf(ofEarlierBridge, e.GetName(), e.GetNamespace()))
	if err != nil {
		panic(err)
	}
	return entry{o}.spec()
}

// decorate adds what is not ours to say.
func (e entry) decorate() {
	labels := e.GetLabels()
	labels["team"] = "shop"
	e.SetLabels(labels)
	e.annotate("example.com/note", "do not touch")
	e.SetFinalizers([]string{"example.com/wait"})
	e.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}})
}

// mustBeDecorated is that what somebody else says of the metadata is still there.
func (a *api) mustBeDecorated(what, namespace, name string) {
	a.t.Helper()
	o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
	if err != nil {
		a.t.Fatal(err)
	}
	if o.GetLabels()["team"] == "" || o.GetAnnotations()["example.com/note"] == "" || len(o.GetFinalizers()) != 1 || len(o.GetOwnerReferences()) != 1 {
		a.t.Errorf("%s: what others have said of the object is gone: %v", what, o.Object["metadata"])
	}
}

// edit is something that somebody does to an object.
type edit func(a *api, namespace, name string) error

// edited reads an object, changes it and writes it as a whole.
func edited(change func(entry)) edit {
	return func(a *api, namespace, name string) error {
		o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
		if err != nil {
			return err
		}
		change(entry{o})
		return a.client.As("kubectl-edit").Update(a.t.Context(), cluster.ServiceEntries, o)
	}
}

// applied reads an object, changes it and applies its specification by force, as
// one who has it in a repository.
func applied(change func(entry)) edit {
	return func(a *api, namespace, name string) error {
		o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
		if err != nil {
			return err
		}
		change(entry{o})
		o.Object["metadata"] = fields{"name": name, "namespace": namespace}
		delete(o.Object, "status")
		return a.client.As("argocd").Apply(a.t.Context(), cluster.ServiceEntries, o)
	}
}

// patched sends a patch.
func patched(as types.PatchType, patch string) edit {
	return func(a *api, namespace, name string) error {
		return a.client.As("kubectl-patch").Patch(a.t.Context(), cluster.ServiceEntries, namespace, name, as, patch)
	}
}

// MustEdit does something to an object, again if somebody else was faster.
func (a *api) MustEdit(namespace, name, what string, do edit) {
	a.t.Helper()
	await(a.t, what, func() error { return do(a, namespace, name) })
}

// awaitEndpoints waits until an object is written with so many endpoints.
func (a *api) awaitEndpoints(namespace, name string, count int) *unstructured.Unstructured {
	a.t.Helper()
	await(a.t, name+" to have its endpoints", func() error {
		o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, namespace, name)
		if err == nil && len(entry{o}.list("endpoints")) != count {
			err = fmt.Errorf("it is %v", o.Object)
		}
		return err
	})
	return a.awaitWritten(namespace, name)
}

// awaitRepaired waits until an object says all that it said before, and nothing
// besides in its specification.
func (a *api) awaitRepaired(what string, before *unstructured.Unstructured) {
	a.t.Helper()
	await(a.t, what+": the object to be repaired", func() error {
		o, err := a.client.Get(a.t.Context(), cluster.ServiceEntries, before.GetNamespace(), before.GetName())
		if err != nil {
			return err
		}
		now := said(o)
		now["labels"], now["annotations"] = among(before.GetLabels(), o.GetLabels()), among(before.GetAnnotations(), o.GetAnnotations())
		if diff := cmp.Diff(said(before), now); diff != "" {
			return fmt.Errorf("it is not what it was (-):\n%s", diff)
		}
		return nil
	})
}

// among are those entries of a map of which another has the name.
func among(names, all map[string]string) map[string]string {
	found := map[string]string{}
	for name := range names {
		if value, ok := all[name]; ok {
			found[name] = value
		}
	}
	return found
}

package istio

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

const workloads = "networking.istio.io/v1/namespaces/shop/workloadentries/"

// inForm has a writer write a form, and move without waiting for an istiod.
func inForm(f translate.Form) func(*Config, *Options) {
	return func(c *Config, o *Options) {
		c.Endpoints, c.ShardSize, o.settle = f, 3, time.Nanosecond
	}
}

// served tells what istiod makes of the objects of a.example: who is served, at how
// many places, by its two rules: endpoints of all ServiceEntries of a host are united, and a
// ServiceEntry with a selector has the WorkloadEntries whose labels have all of it.
func served(objects map[string]kubeapi.Object) map[string]int {
	found := map[string]int{}
	for path, o := range objects {
		spec, _ := o["spec"].(kubeapi.Object)
		if !strings.HasPrefix(path, entries) || fmt.Sprint(spec["hosts"]) != "[a.example]" {
			continue
		}
		if list, ok := spec["endpoints"].([]any); ok {
			for _, e := range list {
				e, _ := e.(kubeapi.Object)
				found[fmt.Sprint(e["address"])]++
			}
		}
		selector, _ := spec["workloadSelector"].(kubeapi.Object)
		labels, _ := selector["labels"].(kubeapi.Object)
		for other, o := range objects {
			metadata, _ := o["metadata"].(kubeapi.Object)
			if has, _ := metadata["labels"].(kubeapi.Object); len(labels) > 0 && strings.HasPrefix(other, workloads) && contains(has, labels) {
				spec, _ := o["spec"].(kubeapi.Object)
				found[fmt.Sprint(spec["address"])]++
			}
		}
	}
	return found
}

func contains(all, some kubeapi.Object) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// fleetSays has n endpoints join a.example.
func fleetSays(n int) []model.Event {
	events := []model.Event{shop.Service("sc", "a.example")}
	for i := range n {
		events = append(events, shop.Instance("sc", "a.example", fmt.Sprintf("10.0.0.%d", i)))
	}
	return events
}

// counts waits until there are so many objects of each kind, and nothing is pending.
func counts(t *testing.T, api *kubeapi.Server, w *running, serviceEntries, workloadEntries int) {
	t.Helper()
	await(t, "the objects of the form", func() error {
		got := [2]int{}
		for path := range api.Everything() {
			if strings.HasPrefix(path, entries) {
				got[0]++
			} else if strings.HasPrefix(path, workloads) {
				got[1]++
			}
		}
		if want := [2]int{serviceEntries, workloadEntries}; got != want {
			return fmt.Errorf("there are %v, want %v; failing: %v", got, want, w.Status().Failing)
		}
		return nil
	})
	settled(t, w)
}

// In the second form a change of one endpoint is a write of one object, which has
// nothing but this endpoint.
func TestWorkloadIsOneWrite(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(fleetSays(40)...)
	r.listed("sc")
	w := start(t, api, r, inForm(translate.WorkloadEntries))
	counts(t, api, w, 1, 40)
	for what, event := range map[string]model.Event{
		"PATCH a new label": shop.InstanceOf("sc", "a.example", shop.Labelled("10.0.0.7", map[string]string{"version": "2"})),
		"PATCH a new one":   shop.Instance("sc", "a.example", "10.0.1.1"),
		"DELETE one goes":   shop.NoInstance("sc", "a.example", "10.0.0.3"),
	} {
		before := len(api.Writes())
		r.say(event)
		await(t, what, func() error {
			if len(api.Writes()) == before {
				return errors.New("nothing is written")
			}
			return nil
		})
		settled(t, w)
		verb, _, _ := strings.Cut(what, " ")
		writes := api.Writes()[before:]
		if len(writes) != 1 || !strings.HasPrefix(writes[0], verb+" "+workloads) {
			t.Errorf("%s: it wrote %v", what, writes)
		}
	}
	if got := served(api.Everything()); len(got) != 40 {
		t.Errorf("served are %v", got)
	}
}

// What others do to the objects of endpoints is undone, whatever they take from them.
func TestWorkloadsAreRestored(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(fleetSays(3)...)
	r.listed("sc")
	w := start(t, api, r, inForm(translate.WorkloadEntries))
	counts(t, api, w, 1, 3)
	before, drift := api.Everything(), uint64(0)
	restored := func(what string) {
		t.Helper()
		drift++
		await(t, what+" to be undone", func() error {
			for path, o := range before {
				is := api.Get(path)
				if is == nil || fmt.Sprint(is["spec"]) != fmt.Sprint(o["spec"]) || fmt.Sprint(labelsOf(is)) != fmt.Sprint(labelsOf(o)) {
					return fmt.Errorf("%s is %v", path, is)
				}
			}
			if got := w.Status().Drift; got < drift {
				return fmt.Errorf("the drift is %d", got)
			}
			return nil
		})
		settled(t, w)
	}
	one := ""
	for path := range before {
		if strings.HasPrefix(path, workloads) {
			one = path
		}
	}
	changed := func(change func(o kubeapi.Object)) {
		o := api.Get(one)
		change(o)
		api.Put(one, o)
	}
	api.Delete(one)
	restored("a deletion")
	changed(func(o kubeapi.Object) { o["spec"].(kubeapi.Object)["weight"] = int64(9) })
	restored("a weight")
	changed(func(o kubeapi.Object) { delete(labelsOf(o), object.LabelService) })
	restored("the loss of the label that it is selected by")
	changed(func(o kubeapi.Object) { delete(annotationsOf(o), object.AnnotationService) })
	await(t, "the annotation to be restored", func() error {
		if annotationsOf(api.Get(one))[object.AnnotationService] != "a.example" {
			return errors.New("it is not there")
		}
		return nil
	})
	settled(t, w)
}

func labelsOf(o kubeapi.Object) kubeapi.Object {
	labels, _ := o["metadata"].(kubeapi.Object)["labels"].(kubeapi.Object)
	return labels
}

func annotationsOf(o kubeapi.Object) kubeapi.Object {
	annotations, _ := o["metadata"].(kubeapi.Object)["annotations"].(kubeapi.Object)
	return annotations
}

// A service that goes takes its objects with it, and those of others stay.
func TestWorkloadsGoWithTheirService(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	theirs := workloads + "theirs"
	api.Put(theirs, kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry", "metadata": kubeapi.Object{"name": "theirs", "namespace": "shop"},
		"spec": kubeapi.Object{"address": "10.9.9.9"},
	})
	r.say(fleetSays(5)...)
	r.listed("sc")
	w := start(t, api, r, inForm(translate.WorkloadEntries))
	counts(t, api, w, 1, 6)
	gone := []model.Event{shop.NoService("sc", "a.example")}
	for i := range 5 {
		gone = append(gone, shop.NoInstance("sc", "a.example", fmt.Sprintf("10.0.0.%d", i)))
	}
	r.say(gone...)
	counts(t, api, w, 0, 1)
	if api.Get(theirs) == nil {
		t.Error("an object of somebody else was deleted")
	}
}

package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
)

// earlierBridge is the program that Isthmus replaces. It wrote objects without labels, so
// they are recognized by their form.
const earlierBridge = "servicecomb-service-center-istio"

// inTheWayOf describes an object that blocks a creation, and the effect of its hand-over. u
// is the existing object.
func inTheWayOf(a plan.Action, u *unstructured.Unstructured) plan.Action {
	labels := u.GetLabels()
	a.Verb, a.Reason = plan.Leave, (&write.Clash{Ref: a.Ref, Labels: labels}).Error()
	if isOfAnother(labels) {
		return a
	}
	a.Diff = difference(specOf(u), a.Want.SpecMap())
	if WrittenByEarlierBridge(u) {
		a.HandOver, a.Reason = plan.Update, handOver("so it is not changed", "updated")
	}
	return a
}

// handOver is the reason why an object of the earlier bridge is left.
func handOver(why, what string) string {
	return fmt.Sprintf("it looks like an object of %s, %s: with both labels, %s and %s, it would be %s",
		earlierBridge, why, object.LabelManagedBy, object.LabelInstance, what)
}

// isOfAnother reports whether labels mark an object of another instance of Isthmus.
func isOfAnother(labels map[string]string) bool {
	return labels[object.LabelManagedBy] == object.ManagedBy && labels[object.LabelInstance] != ""
}

func specOf(u *unstructured.Unstructured) map[string]any {
	spec, _ := u.Object["spec"].(map[string]any)
	return spec
}

// abandoned lists the objects of the earlier bridge without a service: no action is planned
// for their names.
func (r Rehearsal) abandoned(ctx context.Context, planned []plan.Action) (list []plan.Action, err error) {
	known := map[object.Ref]bool{}
	for _, a := range planned {
		known[a.Ref] = true
	}
	err = r.Remote.Each(ctx, object.ServiceEntry, "", func(u *unstructured.Unstructured) {
		o := object.Observe(object.ServiceEntry, u)
		if known[o.Ref] || isOfAnother(o.Labels) || !WrittenByEarlierBridge(u) {
			return
		}
		a := plan.Action{Verb: plan.Leave, Ref: o.Ref, HandOver: plan.Delete, Reason: handOver("and no service needs it", "deleted"), Have: o}
		if reason := r.Facts.Unjudged(o); reason != "" {
			a.HandOver, a.Reason = "", handOver("and no service known so far needs it", "left for now, since "+reason)
		}
		a.Diff = difference(specOf(u), nil)
		list = append(list, a)
	})
	return list, err
}

// WrittenByEarlierBridge reports whether an object has the form that the earlier bridge
// wrote. Metadata added by others does not count.
func WrittenByEarlierBridge(u *unstructured.Unstructured) bool {
	spec := specOf(u)
	for field := range maps.Keys(spec) {
		if !slices.Contains([]string{"hosts", "ports", "location", "resolution", "endpoints"}, field) {
			return false
		}
	}
	hosts, _, _ := unstructured.NestedStringSlice(spec, "hosts")
	return slices.Equal(hosts, []string{u.GetName()}) && spec["location"] == "MESH_INTERNAL" && spec["resolution"] == "STATIC" &&
		allOf(spec["ports"], isPortOfEarlierBridge) && allOf(spec["endpoints"], isEndpointOfEarlierBridge)
}

// allOf reports whether all elements of a list have a form; true for no list.
func allOf(list any, is func(map[string]any) bool) bool {
	items, _ := list.([]any)
	return !slices.ContainsFunc(items, func(item any) bool {
		fields, ok := item.(map[string]any)
		return !ok || !is(fields)
	})
}

// isPortOfEarlierBridge reports whether a port has a name such as HTTP-8080.
func isPortOfEarlierBridge(port map[string]any) bool {
	number, _ := port["number"].(int64)
	return port["name"] == fmt.Sprint(port["protocol"])+"-"+strconv.FormatInt(number, 10)
}

// isEndpointOfEarlierBridge checks the label with the id of the instance.
func isEndpointOfEarlierBridge(endpoint map[string]any) bool {
	labels, _, err := unstructured.NestedStringMap(endpoint, "labels")
	if err != nil || labels["instanceId"] == "" {
		return false
	}
	delete(labels, "name")
	return len(labels) == 1
}

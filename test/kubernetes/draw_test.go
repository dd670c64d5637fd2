package kubernetes_test

import (
	"cmp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

func (h *history) node() string {
	return rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(h.rt, "node")
}

func (h *history) sliceName() string {
	return rapid.SampledFrom([]string{"s1", "s2", "s3", "s4-v6"}).Draw(h.rt, "slice")
}

// portNames are those of the port that slices have. A port may be renamed.
var portNames = []string{"http", "http", "http", "web", `""`}

// service draws a Service of some type.
func (h *history) service(name string) *unstructured.Unstructured {
	port := rapid.SampledFrom(portNames).Draw(h.rt, "port")
	more := ""
	if port != `""` && rapid.Bool().Draw(h.rt, "two ports") { // of which each has a name
		more = ", {name: admin, port: 90}"
	}
	kind := rapid.SampledFrom([]string{
		"", "type: NodePort,", "clusterIP: None,", "clusterIP: None, publishNotReadyAddresses: true,", "publishNotReadyAddresses: true,",
		"type: ExternalName, externalName: one.example,", "type: ExternalName, externalName: two.example,",
	}).Draw(h.rt, "kind")
	return object(h.tb, `{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s}, spec: {%s ports: [{name: %s, port: 80}%s]}}`,
		h.namespace, name, kind, port, more)
}

// slice draws a slice of one of the services. The same pods and addresses come in all.
func (h *history) slice(service string) *unstructured.Unstructured {
	name := h.sliceName()
	u := object(h.tb, `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: %s, name: %s, labels: {kubernetes.io/service-name: %s}}}`,
		h.namespace, name, service)
	prefix := "10.1.0."
	if name == "s4-v6" {
		prefix, u.Object["addressType"] = "fd00::", "IPv6"
	}
	port := int64(8080 + rapid.IntRange(0, 1).Draw(h.rt, "port"))
	u.Object["ports"] = []any{map[string]any{"name": strings.Trim(rapid.SampledFrom(portNames).Draw(h.rt, "port name"), `"`), "port": port}}
	var endpoints []any
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 0, 5, rapid.ID[int]).Draw(h.rt, "endpoints") {
		endpoints = append(endpoints, h.endpoint(prefix, n))
	}
	u.Object["endpoints"] = endpoints
	return u
}

func (h *history) endpoint(prefix string, n int) map[string]any {
	e := map[string]any{"addresses": []any{prefix + strconv.Itoa(n)}, "nodeName": h.node()}
	conditions := map[string]any{}
	for _, name := range []string{"ready", "serving", "terminating"} {
		switch rapid.IntRange(0, 3).Draw(h.rt, name) {
		case 0:
			conditions[name] = true
		case 1:
			conditions[name] = false
		}
	}
	e["conditions"] = conditions
	if rapid.Bool().Draw(h.rt, "of a pod") {
		pod := "pod-" + strconv.Itoa(n)
		e["targetRef"] = map[string]any{"kind": "Pod", "namespace": h.namespace, "name": pod, "uid": cmp.Or(h.podUIDs[pod], "uid-of-"+pod)}
		e["hostname"] = pod
	}
	return e
}

func (h *history) pod() {
	name := "pod-" + strconv.Itoa(rapid.IntRange(1, 6).Draw(h.rt, "pod"))
	if rapid.IntRange(0, 2).Draw(h.rt, "gone") == 0 {
		h.delete(podsOf, name)
		return
	}
	h.apply(object(h.tb, `{apiVersion: v1, kind: Pod, metadata: {namespace: %s, name: %s, labels: {app: %s}}, spec: {containers: [{name: c, image: c}]}}`,
		h.namespace, name, rapid.SampledFrom([]string{"one", "two"}).Draw(h.rt, "app")))
	if pod, err := h.client.Get(h.rt.Context(), podsOf, h.namespace, name); err == nil {
		h.podUIDs[name] = string(pod.GetUID())
	}
}

func (h *history) entry() {
	if rapid.IntRange(0, 2).Draw(h.rt, "gone") == 0 {
		h.delete(cluster.ServiceEntries, "entry")
		return
	}
	h.apply(object(h.tb, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {namespace: %s, name: entry}
spec:
  hosts: [entry.example]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.7.0.%d}]`, h.namespace, rapid.IntRange(1, 3).Draw(h.rt, "at")))
}

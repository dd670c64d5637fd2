package kubeapi

import (
	"fmt"

	"pgregory.net/rapid"
)

// DrawSpec draws the specification of some ServiceEntry that Istio's schema
// allows, with names and numbers of ports as others choose them as well.
func DrawSpec(t *rapid.T, host string) Object {
	spec := Object{"hosts": []any{host}}
	if rapid.IntRange(0, 4).Draw(t, "another host") == 0 {
		spec["hosts"] = []any{"other.example"}
	}
	resolution := draw(t, spec, "resolution", "STATIC", "STATIC", "STATIC", "NONE", "DNS", "DNS_ROUND_ROBIN")
	draw(t, spec, "location", "MESH_INTERNAL", "MESH_EXTERNAL")
	for _, field := range []string{"addresses", "exportTo", "subjectAltNames"} {
		value := map[string]string{"addresses": "240.1.1.1", "exportTo": ".", "subjectAltNames": "spiffe://other"}[field]
		if rapid.IntRange(0, 3).Draw(t, field) == 0 {
			spec[field] = []any{value}
		}
	}
	if ports := drawPorts(t); len(ports) > 0 {
		spec["ports"] = ports
	}
	most := map[any]int{nil: 0, "NONE": 0, "DNS_ROUND_ROBIN": 1}
	limit, limited := most[resolution]
	if !limited {
		limit = 3
	}
	if endpoints := drawEndpoints(t, limit); len(endpoints) > 0 {
		spec["endpoints"] = endpoints
	} else if rapid.Bool().Draw(t, "selects workloads") {
		spec["workloadSelector"] = Object{"labels": Object{"app": "web"}}
	}
	return spec
}

// draw sets a field to one of some values, or leaves it away.
func draw(t *rapid.T, in Object, field string, values ...any) any {
	if at := rapid.IntRange(-1, len(values)-1).Draw(t, field); at >= 0 {
		in[field] = values[at]
	}
	return in[field]
}

// drawPorts draws ports of different names and numbers.
func drawPorts(t *rapid.T) (ports []any) {
	names := rapid.Permutation([]string{"HTTP-8080", "http-8080", "grpc-80", "tcp-7070", "web"}).Draw(t, "names")
	numbers := rapid.Permutation([]int64{80, 8080, 7070, 9999}).Draw(t, "numbers")
	for i := range rapid.IntRange(0, len(numbers)).Draw(t, "ports") {
		port := Object{"name": names[i], "number": numbers[i]}
		draw(t, port, "protocol", "HTTP", "GRPC", "TCP")
		draw(t, port, "targetPort", int64(80), int64(8081))
		ports = append(ports, port)
	}
	return ports
}

func drawEndpoints(t *rapid.T, most int) (endpoints []any) {
	for i := range rapid.IntRange(0, most).Draw(t, "endpoints") {
		endpoint := Object{"address": fmt.Sprintf("10.0.0.%d", i+1)}
		draw(t, endpoint, "ports", Object{"HTTP-8080": int64(8080)}, Object{"web": int64(1)})
		draw(t, endpoint, "labels", Object{"instanceId": "5afe"}, Object{})
		draw(t, endpoint, "weight", int64(3))
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
}

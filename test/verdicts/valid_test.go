package verdicts

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// valid makes specifications that are right most of the time, by kind.
var valid = map[string]func(*rapid.T) any{
	"ServiceEntry":  serviceEntry,
	"WorkloadEntry": func(t *rapid.T) any { return workload(t, endpoints[:6], portNames[:3]) },
	"WorkloadGroup": workloadGroup,
	"Sidecar":       sidecar,
}

func serviceEntry(t *rapid.T) any {
	mode := pick(t, list{"NONE", "STATIC", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS", absent})
	spec := object{}
	put(spec, "resolution", mode)
	put(spec, "location", pick(t, list{absent, "MESH_EXTERNAL", "MESH_INTERNAL"}))
	put(spec, "exportTo", pick(t, list{absent, list{}, list{"."}, list{"*"}, list{"~"}, list{"prod", "other"}, list{".", "prod"}}))
	put(spec, "subjectAltNames", pick(t, list{absent, list{"spiffe://a"}}))
	several := chance(t, 4)
	spec["hosts"] = list{hostFor(t, mode)}
	if several {
		spec["hosts"] = list{hostFor(t, mode), hostFor(t, mode)}
	}
	allowed := list{"HTTP", "HTTP2", "GRPC", "TLS"}
	if mode != "DYNAMIC_DNS" && !several {
		allowed = protocols[:14]
	}
	var names list
	var ports list
	for i := range rapid.IntRange(0, 3).Draw(t, "ports") {
		name := fmt.Sprintf("p%d", i)
		port := object{"number": 80 + i, "name": name}
		put(port, "protocol", pick(t, allowed))
		put(port, "targetPort", pick(t, list{absent, absent, 8080}))
		ports, names = append(ports, port), append(names, name)
	}
	if ports != nil {
		spec["ports"] = ports
	}
	if mode != "DYNAMIC_DNS" && chance(t, 3) {
		spec["addresses"] = list{usual(t, addresses, 3)}
		if mode == "STATIC" || mode == "NONE" {
			spec["addresses"] = list{usual(t, addresses, 5), "10.0.0.9"}
		}
	}
	switch {
	case mode == "STATIC" && len(ports) == 1:
		putEndpoints(t, spec, 3, list{"10.0.0.1", "10.0.0.2", "2001:db8::1", "unix:///run/a.sock", "unix://@a"}, names)
	case mode == "STATIC":
		putEndpoints(t, spec, 3, list{"10.0.0.1", "10.0.0.2", "2001:db8::1"}, names)
	case mode == "DNS":
		putEndpoints(t, spec, 3, endpoints[:4], names)
	case mode == "DNS_ROUND_ROBIN":
		putEndpoints(t, spec, 1, endpoints[:4], names)
	}
	if spec["endpoints"] == nil && chance(t, 3) {
		spec["workloadSelector"] = object{"labels": object{"app": "web"}}
	}
	return spec
}

func hostFor(t *rapid.T, mode any) any {
	switch mode {
	case "DYNAMIC_DNS":
		return pick(t, list{"*.a.example", "*.b.example", "*a.example"})
	case "DNS", "DNS_ROUND_ROBIN":
		return usual(t, hosts, 2)
	default:
		return usual(t, hosts, 6)
	}
}

func putEndpoints(t *rapid.T, spec object, most int, addresses, ports list) {
	var all list
	for range rapid.IntRange(0, most).Draw(t, "endpoints") {
		all = append(all, workload(t, addresses, ports))
	}
	if all != nil {
		spec["endpoints"] = all
	}
}

func workload(t *rapid.T, addresses, ports list) any {
	address := pick(t, addresses).(string)
	entry := object{"address": address}
	if len(ports) > 0 && address[0] != 'u' && chance(t, 2) {
		entry["ports"] = object{pick(t, ports).(string): 8080}
	}
	put(entry, "labels", pick(t, list{absent, object{}, object{"app": "web", "example.com/tier": ""}}))
	put(entry, "weight", pick(t, list{absent, 0, 10}))
	put(entry, "locality", pick(t, list{absent, "eu/eu-1/a"}))
	put(entry, "network", pick(t, list{absent, "net"}))
	put(entry, "serviceAccount", pick(t, list{absent, "web"}))
	return entry
}

func workloadGroup(t *rapid.T) any {
	template := workload(t, list{"10.0.0.1", "a.example"}, portNames[:3]).(object)
	if chance(t, 2) {
		delete(template, "address")
	}
	spec := object{"template": template}
	put(spec, "metadata", pick(t, list{absent, object{"labels": object{"app": "web"}, "annotations": object{"a": "b"}}}))
	if chance(t, 2) {
		return spec
	}
	method := pick(t, list{"httpGet", "httpGet", "tcpSocket", "exec"}).(string)
	how := map[string]object{
		"httpGet": {
			"port": 80, "path": "/", "scheme": pick(t, list{"HTTP", "HTTPS", ""}),
			"httpHeaders": list{object{"name": "X-A", "value": "b"}},
		},
		"tcpSocket": {"port": 80, "host": "a"},
		"exec":      {"command": list{"true"}},
	}[method]
	probe := object{method: how}
	put(probe, "periodSeconds", pick(t, list{absent, 0, 5}))
	put(probe, "failureThreshold", pick(t, list{absent, 3}))
	spec["probe"] = probe
	return spec
}

func sidecar(t *rapid.T) any {
	spec := object{}
	put(spec, "workloadSelector", pick(t, list{absent, object{}, object{"labels": object{"app": "web"}}}))
	var ingress, egress list
	for i := range rapid.IntRange(0, 2).Draw(t, "ingress") {
		ingress = append(ingress, ingressListener(t, 8080+i))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "egress") {
		egress = append(egress, egressListener(t, i))
	}
	if chance(t, 2) || len(egress) == 0 {
		egress = append(egress, object{"hosts": list{"./*", pick(t, list{"*/*", "prod/*.a.example", "~/*", "prod/a.example", "~prod/a.example"})}})
	}
	put(spec, "ingress", orAbsent(ingress))
	put(spec, "egress", orAbsent(egress))
	put(spec, "outboundTrafficPolicy", pick(t, list{
		absent, absent,
		object{},
		object{"mode": "ALLOW_ANY"},
		object{"mode": "REGISTRY_ONLY"},
		object{"mode": "ALLOW_ANY", "egressProxy": object{"host": "a.example", "subset": "v1", "port": object{"number": 80}}},
	}))
	if chance(t, 5) {
		spec["inboundConnectionPool"] = pool(t)
	}
	return spec
}

func ingressListener(t *rapid.T, number int) any {
	out := object{}
	port := object{"number": number, "name": "http", "protocol": pick(t, protocols[:14])}
	if chance(t, 3) {
		port["protocol"] = pick(t, list{"HTTPS", "TLS"})
		mode := pick(t, list{"SIMPLE", "MUTUAL", "OPTIONAL_MUTUAL", "PASSTHROUGH", absent})
		tls := object{"serverCertificate": "a", "privateKey": "b"}
		put(tls, "mode", mode)
		if mode != "SIMPLE" {
			tls["caCertificates"] = "c"
			put(tls, "caCrl", pick(t, list{absent, "d"}))
		}
		out["tls"] = tls
	}
	out["port"] = port
	put(out, "bind", pick(t, list{absent, "127.0.0.1", "::"}))
	put(out, "captureMode", pick(t, list{absent, "NONE", "IPTABLES"}))
	put(out, "defaultEndpoint", pick(t, append(list{absent}, defaults[:6]...)))
	if chance(t, 4) {
		out["connectionPool"] = pool(t)
	}
	return out
}

func egressListener(t *rapid.T, i int) any {
	out := object{"hosts": list{pick(t, list{"./*", "*/*", "prod/a.example"})}}
	if chance(t, 3) {
		out["bind"], out["port"] = fmt.Sprintf("unix:///%d", i), object{"protocol": "HTTP"}
		return out
	}
	out["port"] = object{"number": 9000 + i, "name": "a", "protocol": pick(t, protocols[:14])}
	put(out, "bind", pick(t, list{absent, "127.0.0.1"}))
	put(out, "captureMode", pick(t, list{absent, "NONE", "IPTABLES", "DEFAULT"}))
	return out
}

func pool(t *rapid.T) any {
	http := object{"idleTimeout": usual(t, durations, 6), "maxRetries": 1}
	put(http, "http2KeepAlive", pick(t, list{absent, object{"interval": "1s", "timeout": "10ms"}}))
	tcp := object{"connectTimeout": usual(t, durations, 6), "tcpKeepalive": object{"time": "1h", "probes": 3}}
	return pick(t, list{object{"http": http}, object{"tcp": tcp}, object{"http": http, "tcp": tcp}})
}

func put(fields object, name string, value any) {
	if value != absent {
		fields[name] = value
	}
}

func orAbsent(items list) any {
	if items == nil {
		return absent
	}
	return items
}

func sortedKeys[V any](fields map[string]V) []string { return slices.Sorted(maps.Keys(fields)) }

package kubernetes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// made is what becomes of a Service and its slices: each endpoint as
// "address ports health", by the host that it is of.
func made(t *testing.T, service string, slices ...string) map[string][]string {
	t.Helper()
	group := kubernetes.NewGroup(kubernetes.Cluster{Domain: "cluster.local"}, shop, &known{}, &kubernetes.Index{})
	read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, service))
	group.SetService(&read)
	for i, text := range slices {
		s := parse[discoveryv1.EndpointSlice](t, text)
		s.Name = fmt.Sprintf("web-%d", i)
		group.SetSlice(kubernetes.ReadSlice(s))
	}
	out := map[string][]string{}
	for _, o := range group.Objects() {
		s, ok := o.Record.Spec.(model.Service)
		if !ok {
			t.Fatalf("%v has a %T", o.Record.Ref, o.Record.Spec)
		}
		out[s.Hosts.At(0)] = []string{}
		for _, r := range o.Owned {
			e, ok := r.Spec.(model.Endpoint)
			if !ok {
				t.Fatalf("%v has a %T", r.Ref, r.Spec)
			}
			out[s.Hosts.At(0)] = append(out[s.Hosts.At(0)], line(e))
		}
	}
	return out
}

func line(e model.Endpoint) string {
	parts := []string{strings.Join(append([]string{e.Address}, e.Also.Slice()...), "+")}
	for _, name := range slices.Sorted(maps.Keys(e.Ports.Map())) {
		number, _ := e.Ports.Get(name)
		parts = append(parts, fmt.Sprintf("%s=%d", name, number))
	}
	if e.Exact {
		parts = append(parts, "only")
	}
	if e.Health != model.Healthy {
		parts = append(parts, string(e.Health))
	}
	return strings.Join(parts, " ")
}

const (
	host     = "web.shop.svc.cluster.local"
	plain    = `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}]}}`
	headless = `{metadata: {namespace: shop, name: web}, spec: {clusterIP: None, ports: [{name: http, port: 80}]}}`
)

// slice is one of port 8080, of endpoints in the flow form of YAML.
func slice(endpoints string) string {
	return `{addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [` + endpoints + `]}`
}

func mustMake(t *testing.T, got map[string][]string, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConditionsThatAreAbsentHold(t *testing.T) {
	t.Parallel()
	mustMake(t, made(t, plain, slice(`{addresses: [10.1.0.1]}, {addresses: [10.1.0.2], conditions: {ready: false}}`)),
		map[string][]string{host: {"10.1.0.1 http=8080", "10.1.0.2 http=8080 UNHEALTHY"}})
}

func TestEndpointThatEndsServesIfNothingElseDoes(t *testing.T) {
	t.Parallel()
	ending := `{addresses: [10.1.0.1], conditions: {ready: false, serving: true, terminating: true}}`
	mustMake(t, made(t, plain, slice(ending)), map[string][]string{host: {"10.1.0.1 http=8080"}})
	mustMake(t, made(t, plain, slice(ending+`, {addresses: [10.1.0.2]}`)),
		map[string][]string{host: {"10.1.0.1 http=8080 DRAINING", "10.1.0.2 http=8080"}})
}

func TestEndpointsThatAreNotReadyArePublishedIfAskedFor(t *testing.T) {
	t.Parallel()
	service := strings.Replace(plain, "ports:", "publishNotReadyAddresses: true, ports:", 1)
	mustMake(t, made(t, service, slice(`{addresses: [10.1.0.1], conditions: {ready: false, terminating: true}}`)),
		map[string][]string{host: {"10.1.0.1 http=8080"}})
}

func TestPortsAreMatchedByName(t *testing.T) {
	t.Parallel()
	service := `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 90}]}}`
	mustMake(t, made(t, service,
		`{addressType: IPv4, ports: [{name: admin, port: 9090}, {name: http, port: 8080}], endpoints: [{addresses: [10.1.0.1]}]}`,
		`{addressType: IPv4, ports: [{name: http}], endpoints: [{addresses: [10.1.0.2]}]}`,
		`{addressType: IPv4, ports: [{name: other, port: 1}], endpoints: [{addresses: [10.1.0.3]}]}`,
		`{addressType: IPv4, endpoints: [{addresses: [10.1.0.4]}]}`,
	), map[string][]string{host: {"10.1.0.1 admin=9090", "10.1.0.2 http=8080 only"}})
}

func TestSinglePortNeedsNoName(t *testing.T) {
	t.Parallel()
	service := `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}`
	mustMake(t, made(t, service, `{addressType: IPv4, ports: [{name: "", port: 8080}], endpoints: [{addresses: [10.1.0.1]}]}`),
		map[string][]string{host: {"10.1.0.1 port-80=8080"}})
}

func TestPodsOfANodeShareItsAddress(t *testing.T) {
	t.Parallel()
	mustMake(t, made(t, plain,
		`{addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [192.0.2.1], targetRef: {kind: Pod, name: a, uid: a}}]}`,
		`{addressType: IPv4, ports: [{name: http, port: 8081}], endpoints: [{addresses: [192.0.2.1], targetRef: {kind: Pod, name: b, uid: b}}]}`,
	), map[string][]string{host: {"192.0.2.1 http=8080", "192.0.2.1 http=8081"}})
}

// Of pods in the network of a node that share one port, the one that is ready serves it,
// whatever other ports they have. So a rollout takes no port away that both pods have.
func TestSharedPortIsThatOfThePodThatServes(t *testing.T) {
	t.Parallel()
	service := `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}, {name: metrics, port: 90}]}}`
	pod := func(name, metrics, conditions string) string {
		return `{addressType: IPv4, ports: [{name: http, port: 8080}, {name: metrics, port: ` + metrics + `}], endpoints: [{addresses: [192.0.2.1], conditions: {` + conditions +
			`}, targetRef: {kind: Pod, name: ` + name + `, uid: ` + name + `}}]}`
	}
	old, now := pod("old", "9090", "ready: true"), pod("new", "9091", "ready: false")
	want := map[string][]string{host: {"192.0.2.1 http=8080 metrics=9090", "192.0.2.1 metrics=9091 only UNHEALTHY"}}
	mustMake(t, made(t, service, old, now), want)
	mustMake(t, made(t, service, now, old), map[string][]string{host: want[host]})
	mustMake(t, made(t, service, pod("old", "9090", "ready: false, serving: true, terminating: true"), pod("new", "9091", "ready: true")),
		map[string][]string{host: {"192.0.2.1 metrics=9090 only DRAINING", "192.0.2.1 http=8080 metrics=9091"}})
}

// With publishNotReadyAddresses a pod that ended is as ready as the one that has its address
// by now, and may stand in the newer slice. What is said of the endpoint is that of the
// living one.
func TestPublishedEndpointIsThatOfTheLivingPod(t *testing.T) {
	t.Parallel()
	service := strings.Replace(plain, "ports:", "publishNotReadyAddresses: true, ports:", 1)
	endpoint := func(version, name, conditions string) string {
		return `{metadata: {resourceVersion: "` + version + `"}, addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.1.0.1], zone: of-` + name +
			`, conditions: {` + conditions + `}, targetRef: {kind: Pod, name: ` + name + `, uid: ` + name + `}}]}`
	}
	pods := &known{pods: map[kubernetes.Name]kubernetes.Pod{}}
	for _, name := range []string{"ghost", "living"} {
		pods.pods[kubernetes.Name{Namespace: shop.Namespace, Name: name}] = kubernetes.Pod{UID: name, Account: "of-" + name}
	}
	for conditions, of := range map[string]string{
		"ready: true, serving: true, terminating: true":  "living",
		"ready: true, serving: false, terminating: true": "living",
		"ready: true, serving: false":                    "living", // it cannot serve at an address at which another pod does
		"ready: true, serving: true":                     "ghost",  // nothing tells them apart but which slice is newer
	} {
		group := kubernetes.NewGroup(kubernetes.Cluster{Domain: "cluster.local"}, shop, pods, &kubernetes.Index{})
		read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, service))
		group.SetService(&read)
		for i, text := range []string{endpoint("1", "living", "ready: true, serving: true"), endpoint("2", "ghost", conditions)} {
			s := parse[discoveryv1.EndpointSlice](t, text)
			s.Name = fmt.Sprintf("web-%d", i)
			s.Labels = map[string]string{discoveryv1.LabelServiceName: shop.Name}
			s.Namespace = shop.Namespace
			group.SetSlice(kubernetes.ReadSlice(s))
		}
		owned := group.Objects()[0].Owned
		if len(owned) != 1 {
			t.Fatalf("%s: there is %v", conditions, owned)
		}
		e, _ := owned[0].Spec.(model.Endpoint)
		if e.ServiceAccount != "of-"+of || e.Locality.Zone != "of-"+of || e.Health != model.Healthy {
			t.Errorf("the other is %s: the endpoint is %+v, want that of the pod %s", conditions, e, of)
		}
	}
}

// A pod whose ports stand in several slices, as the subsets of an Endpoints object that is
// mirrored do, serves them all. Of one port the newer slice counts.
func TestPortsOfAllSlicesOfAPodAreServed(t *testing.T) {
	t.Parallel()
	service := `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}, {name: metrics, port: 90}]}}`
	const of = `endpoints: [{addresses: [%s], targetRef: {kind: Pod, name: a, uid: a}}]}`
	one := func(version, ports, address string) string {
		return fmt.Sprintf(`{metadata: {resourceVersion: "`+version+`"}, addressType: IPv4, ports: [`+ports+`], `+of, address)
	}
	http, metrics := one("1", `{name: http, port: 8080}`, "10.1.0.1"), one("2", `{name: metrics, port: 9090}`, "10.1.0.1")
	both := map[string][]string{host: {"10.1.0.1 http=8080 metrics=9090"}}
	mustMake(t, made(t, service, http, metrics), both)
	mustMake(t, made(t, service, metrics, http), both)
	mustMake(t, made(t, service, metrics, http, one("3", `{name: http, port: 8081}`, "10.1.0.1")),
		map[string][]string{host: {"10.1.0.1 http=8081 metrics=9090"}})
	mustMake(t, made(t, service, http, one("3", `{name: metrics, port: 9090}`, "10.1.0.2")),
		map[string][]string{host: {"10.1.0.2 metrics=9090 only"}})
}

func TestPodOfTwoAddressesInASliceIsTwoEndpoints(t *testing.T) {
	t.Parallel()
	const pod = `, targetRef: {kind: Pod, name: a, uid: a}}`
	mustMake(t, made(t, plain, slice(`{addresses: [10.1.0.2]`+pod+`, {addresses: [10.1.0.1]`+pod+`, {addresses: [10.1.0.2], conditions: {ready: false}`+pod)),
		map[string][]string{host: {"10.1.0.1 http=8080", "10.1.0.2 http=8080"}})
}

func TestEndpointWithoutAPortDoesNotKeepOthersFromServing(t *testing.T) {
	t.Parallel()
	ending := slice(`{addresses: [10.1.0.1], conditions: {ready: false, serving: true, terminating: true}}`)
	mustMake(t, made(t, plain, ending, `{addressType: IPv4, ports: [{name: other, port: 1}], endpoints: [{addresses: [10.1.0.3]}]}`),
		map[string][]string{host: {"10.1.0.1 http=8080"}})
}

func TestHostNamesOfHeadlessServicesAreHosts(t *testing.T) {
	t.Parallel()
	pods := slice(`{addresses: [10.1.0.1], hostname: web-0}, {addresses: [10.1.0.2], hostname: web-1}`)
	mustMake(t, made(t, headless, pods), map[string][]string{
		host: {"10.1.0.1 http=8080", "10.1.0.2 http=8080"}, "web-0." + host: {"10.1.0.1 http=8080"}, "web-1." + host: {"10.1.0.2 http=8080"},
	})
	mustMake(t, made(t, plain, pods), map[string][]string{host: {"10.1.0.1 http=8080", "10.1.0.2 http=8080"}})
}

func TestExternalNameIsResolved(t *testing.T) {
	t.Parallel()
	service := `{metadata: {namespace: shop, name: web}, spec: {type: ExternalName, externalName: db.Example.com., ports: [{port: 80}]}}`
	mustMake(t, made(t, service), map[string][]string{host: {"db.example.com"}})
	for _, target := range []string{"http", "8080"} { // nobody leads there: clients ask the name for the port of the Service
		targeted := strings.Replace(service, "port: 80", "port: 80, targetPort: "+target, 1)
		read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, targeted))
		if p := read.Spec.Ports.At(0); p.Number != 80 || p.TargetName != "" || p.TargetPort != 0 {
			t.Errorf("with targetPort %s the port is %+v", target, p)
		}
	}
}

func TestNamesInsteadOfAddressesAreLeftOut(t *testing.T) {
	t.Parallel()
	mustMake(t, made(t, plain, `{addressType: FQDN, ports: [{name: http, port: 80}], endpoints: [{addresses: [a.example.com]}]}`),
		map[string][]string{host: {}})
}

func TestPodOfTwoFamiliesIsOneEndpoint(t *testing.T) {
	t.Parallel()
	pod := `targetRef: {kind: Pod, name: a, uid: a}}]}`
	four := `{addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.1.0.1], ` + pod
	six := `{addressType: IPv6, ports: [{name: http, port: 8080}], endpoints: [{addresses: ["FD00:0::1"], ` + pod
	mustMake(t, made(t, plain, four, six), map[string][]string{host: {"10.1.0.1+fd00::1 http=8080"}})
	otherPort := strings.Replace(six, "8080", "8081", 1)
	mustMake(t, made(t, plain, four, otherPort), map[string][]string{host: {"10.1.0.1 http=8080"}})
	sixFirst := strings.Replace(plain, "ports:", "ipFamilies: [IPv6, IPv4], ports:", 1)
	mustMake(t, made(t, sixFirst, four, six), map[string][]string{host: {"fd00::1+10.1.0.1 http=8080"}})
	mustMake(t, made(t, sixFirst, four), map[string][]string{host: {"10.1.0.1 http=8080"}})
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]string{
		`{name: http}`: "HTTP", `{name: http-web}`: "HTTP", `{name: HTTP2}`: "HTTP2", `{name: grpc-web}`: "GRPC-WEB", `{name: grpc-web-a}`: "GRPC-WEB",
		`{name: grpc-a}`: "GRPC", `{name: web}`: "", `{name: httpx}`: "", `{name: tls-a}`: "TLS", `{name: mysql}`: "MYSQL",
		`{name: http, protocol: UDP}`: "UDP", `{name: http, protocol: SCTP}`: "UDP",
		`{name: tcp, appProtocol: http}`: "HTTP", `{name: http, appProtocol: vendor.example/own}`: "",
		`{name: a, appProtocol: kubernetes.io/h2c}`: "HTTP2", `{name: a, appProtocol: Kubernetes.io/WS}`: "HTTP", `{name: a, appProtocol: kubernetes.io/wss}`: "HTTPS",
	} {
		text := `{metadata: {namespace: shop, name: web}, spec: {ports: [` + strings.Replace(port, "{", "{port: 80, ", 1) + `]}}`
		read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, text))
		if got := read.Spec.Ports.At(0).Protocol; got != want {
			t.Errorf("%s: %q, want %q", port, got, want)
		}
	}
}

func TestClusterIPsAreTheAddresses(t *testing.T) {
	t.Parallel()
	text := `{metadata: {namespace: shop, name: web, annotations: {networking.istio.io/exportTo: "., other"}}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, "fd00::1"], ports: [{port: 80}]}}`
	read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, text))
	if diff := cmp.Diff([]string{"10.0.0.1", "fd00::1"}, read.Spec.Addresses.Slice()); diff != "" {
		t.Errorf("addresses: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{".", "other"}, read.Spec.ExportTo.Slice()); diff != "" {
		t.Errorf("exportTo: -want +got:\n%s", diff)
	}
}

func TestTrafficOfServices(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]model.Traffic{
		`{}`:                                    {},
		`{internalTrafficPolicy: Cluster}`:      {},
		`{internalTrafficPolicy: Local}`:        {NodeLocal: true},
		`{trafficDistribution: PreferClose}`:    {Prefer: model.PreferSameZone},
		`{trafficDistribution: PreferSameZone}`: {Prefer: model.PreferSameZone},
		`{trafficDistribution: PreferSameNode, internalTrafficPolicy: Local}`: {NodeLocal: true, Prefer: model.PreferSameNode},
		`{sessionAffinity: None}`:                   {},
		`{sessionAffinity: ClientIP}`:               {Affinity: model.ClientIP},
		`{clusterIP: None}`:                         {Headless: true},
		`{clusterIP: 10.0.0.1}`:                     {},
		`{trafficDistribution: vendor.example/own}`: {},
		`{type: ExternalName, externalName: db.example.com, trafficDistribution: PreferClose}`: {},
	} {
		service := `{metadata: {namespace: shop, name: web}, spec: ` + text + `}`
		if got := (kubernetes.Cluster{}).ReadService(parse[corev1.Service](t, service)).Spec.Traffic; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	annotated := `{metadata: {namespace: shop, name: web, annotations: {networking.istio.io/traffic-distribution: PreferClose}}}`
	if got := (kubernetes.Cluster{}).ReadService(parse[corev1.Service](t, annotated)).Spec.Traffic; got.Prefer != model.PreferSameZone {
		t.Errorf("with the annotation of Istio: %+v", got)
	}
}

// What a catalog makes of a Service of port 80, its slice of 10.1.0.1 and some workloads:
// where the Service is served, and by which kind of record.
func united(t *testing.T, spec string, workloads ...model.Workload) map[string]model.Kind {
	t.Helper()
	service := `{metadata: {namespace: shop, name: web}, spec: {clusterIP: 10.0.0.1, selector: {app: web}, ` + spec + `}}`
	group := kubernetes.NewGroup(kubernetes.Cluster{Domain: "cluster.local"}, shop, &known{}, &kubernetes.Index{})
	read := kubernetes.Cluster{Domain: "cluster.local"}.ReadService(parse[corev1.Service](t, service))
	group.SetService(&read)
	group.SetSlice(kubernetes.ReadSlice(parse[discoveryv1.EndpointSlice](t, slice(`{addresses: [10.1.0.1]}`))))
	var events []model.Event
	for _, o := range group.Objects() {
		for _, r := range append(o.Owned, o.Record) {
			events = append(events, model.Upsert{Record: r})
		}
	}
	for i, w := range workloads {
		ref := model.Ref{Kind: model.KindWorkload, Key: model.Key{Namespace: "shop", Name: fmt.Sprintf("a-%d", i)}}
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Spec: w}})
	}
	b := catalog.NewBuilder(nil)
	b.Apply(1, events)
	found, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: host})
	out := map[string]model.Kind{}
	for e := range found.Endpoints(80).All() {
		out[fmt.Sprintf("%s:%d", e.Address, e.Port)] = e.Record.Kind
	}
	return out
}

func TestWorkloadsThatAServiceSelectsAreEndpoints(t *testing.T) {
	t.Parallel()
	at := func(address, app string, ports map[string]uint32) model.Workload {
		return model.Workload{Endpoint: model.Endpoint{Address: address, Labels: model.MapOf(map[string]string{"app": app}), Ports: model.MapOf(ports)}}
	}
	all := []model.Workload{
		at("10.2.0.1", "web", nil), at("10.2.0.2", "other", nil), at("10.2.0.3", "web", map[string]uint32{"main": 9000}),
		at("10.1.0.1", "web", map[string]uint32{"http": 8080}), // which the slice has, too
	}
	pod := map[string]model.Kind{"10.1.0.1:8080": model.KindEndpoint}
	for ports, want := range map[string]map[string]model.Kind{
		`ports: [{name: http, port: 80, targetPort: 8081}]`: {"10.1.0.1:8080": model.KindEndpoint, "10.2.0.1:8081": model.KindWorkload, "10.2.0.3:8081": model.KindWorkload},
		`ports: [{name: http, port: 80, targetPort: main}]`: {"10.1.0.1:8080": model.KindEndpoint, "10.2.0.3:9000": model.KindWorkload},
	} {
		if diff := cmp.Diff(want, united(t, ports, all...)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", ports, diff)
		}
		if diff := cmp.Diff(pod, united(t, ports)); diff != "" {
			t.Errorf("%s, without workloads: -want +got:\n%s", ports, diff)
		}
	}
}

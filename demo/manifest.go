package demo

import (
	"bytes"
	"fmt"
	"strconv"
)

const (
	namespace = "shop"
	port      = 80
)

// service is a service in the registry.
type service struct {
	name    string
	selects bool // its instances are WorkloadEntry objects, not inline endpoints
}

func (s service) host() string { return s.name + "." + namespace + ".example" }

func (s service) file() string { return s.name + ".yaml" }

// instance is an instance of a service, in the registry's form.
type instance struct {
	name    string
	address string
	port    int
}

const serviceEntry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[3]s]
  ports: [{number: %[4]d, name: grpc, protocol: GRPC}]
  location: MESH_INTERNAL
  resolution: STATIC
`

const workloadEntry = `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  address: %[5]s
  ports: {grpc: %[3]d}
  labels: {app: %[4]s}
`

// manifest is the file of a service at a port.
func manifest(s service, port int, instances []instance) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, serviceEntry, s.name, namespace, s.host(), port)
	if s.selects {
		fmt.Fprintf(&b, "  workloadSelector: {labels: {app: %s}}\n", s.name)
		for _, i := range instances {
			fmt.Fprintf(&b, workloadEntry, i.name, namespace, i.port, s.name, i.address)
		}
		return b.Bytes()
	}
	b.WriteString("  endpoints:\n")
	for _, i := range instances {
		fmt.Fprintf(&b, "  - {address: %s, ports: {grpc: %d}, labels: {instance: %s}}\n", i.address, i.port, i.name)
	}
	return b.Bytes()
}

// lineOf is the line of a file on which an instance stands.
func lineOf(text []byte, i instance) int {
	before, _, _ := bytes.Cut(text, []byte("grpc: "+strconv.Itoa(i.port)))
	return 1 + bytes.Count(before, []byte("\n"))
}

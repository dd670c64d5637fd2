package world

import (
	"net/netip"

	"github.com/isthmus-mesh/isthmus/model"
)

// Client describes a subscriber, as far as its view may depend on that. Each type depends
// on some of the fields: see [World].View and [TypeSpec].Audience.
type Client struct {
	Kind      string // the flavour of resources it understands, such as "envoy"
	Namespace string // of its workload; empty if it has none
	Labels    model.Labels
	Locality  model.Locality
	Network   string
	Node      string   // the node of its workload, as the client declares
	Cluster   string   // of that node, as the client declares
	Addresses []string // of its workload, as the client declares
	// Extensions are the extensions of its program, as the client declares, if resources
	// depend on them.
	Extensions []string
	Release    [2]uint32 // of its program, major and minor, as the client declares; zero if undeclared
	Account    string    // the identity that it proves; empty if it proves none
	// Certified means that it may be sent the certificate of its account.
	Certified  bool
	Revision   string // of a client that is a control plane, as the client declares
	Increments bool   // takes all types on one stream, and each in the mode [Delta]
	Proxy      Proxy  // zero if the client is not in the path of others
}

// Proxy describes a proxy in the path of workloads, as the client declares.
type Proxy struct {
	Role         string // such as "sidecar" or "router"
	Interception string // how connections reach it, such as "REDIRECT"
	Binds        []Bind // of its workload, by port, each port once
	Outbound     Ports  // ports on loopback for services, if nothing redirects connections to the proxy
	Unprivileged bool   // cannot bind ports below 1024
}

// FirstUnprivilegedPort is the first of the ports that any program may bind.
const FirstUnprivilegedPort = 1024

// Bind is the address at which a proxy listens for its workload, and the workload's own.
type Bind struct{ At, To netip.AddrPort }

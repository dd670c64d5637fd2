package output

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Call is a call that an application makes through a client.
type Call struct {
	Client world.Client
	Host   string
	Port   uint32 // of the service, or of the edge if the client is one
}

// Trace is the way of a call through the newest resources of its client.
type Trace struct {
	// Service is the service that the host names for the client; nil if there is none.
	Service *catalog.Service
	Reaches bool
	// Address is the address at which the application calls the host; empty if every address
	// leads the same way.
	Address string
	// Reason says where the way ends, and Next how to change that.
	Reason, Next string
	// Lost means that the call goes to another service, or to none, though the client has the
	// service.
	Lost  bool
	Steps []Step
	// Resources are the resources on the way, in the order in which the call passes them.
	Resources []ResourceName
}

// Step is one decision on the way of a call.
type Step struct {
	Stage string `json:"stage"` // such as "export", "scope", "port", "listener", "endpoints"
	Text  string `json:"text"`
}

// ResourceName identifies a resource of a client.
type ResourceName struct {
	Type, Name string
	Version    string // of the newest one; empty if there is none for the client
}

// ToControlPlane returns the way of a service to a control plane, which decides by itself
// which of its proxies get the service. NotOffered is as in [Clients].
func ToControlPlane(now *catalog.Snapshot, call Call, notOffered func(s *catalog.Service, kind string) string) (t Trace) {
	for s := range now.ByHost(model.Name(call.Host)) {
		t.Service = s
		if reason := notOffered(s, call.Client.Kind); reason != "" {
			t.End("offer", "the control plane does not get the service: "+reason, "correct the service in its registry")
			return t
		}
		t.Reaches, t.Reason = true, "the control plane is sent the service, and decides which of its proxies get it"
		t.Pass("offer", t.Reason)
		return t
	}
	t.End("service", fmt.Sprintf("no service has the host %q", call.Host), "isthmus services lists the hosts")
	return t
}

// Pass adds a step to the way.
func (t *Trace) Pass(stage, text string) { t.Steps = append(t.Steps, Step{stage, text}) }

// End adds the last step, at which the call fails.
func (t *Trace) End(stage, reason, next string) {
	t.Pass(stage, reason)
	t.Reason, t.Next = reason, next
}

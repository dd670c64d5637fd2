package envoy

import (
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// slot tells a resource from every other through all its revisions. The form
// is that of clusters, which differ by the kind of client; the name alone
// would not do, for the same host may live in several namespaces.
type slot struct {
	row  push.Row
	key  catalog.ServiceKey
	port uint32
	form reach.Form

	subset  *policy.Selector // nil for all endpoints
	entered bool             // it is of a gateway, to which the port has another name
}

// Slot implements [push.Subject].
func (s slot) Slot() any { return s }

// common is the slot of a resource that is the same in every form.
func (s slot) common() slot {
	s.form = reach.NoForm
	return s
}

func (s slot) clusterName() string {
	if s.entered {
		name, _ := names.Mesh(s.key.Host, s.port, s.subset.String())
		return name
	}
	return names.Subset(s.key.Host, s.port, s.subset.String())
}

// encode encodes a message as a resource.
func encode(name, url string, m proto.Message) push.Encoded {
	return resourceOf(name, wire.Any(name, url, m))
}

func resourceOf(name string, body []byte) push.Encoded {
	return push.Encoded{Name: name, Version: vhost.VersionOf(body), Body: body}
}

package resource

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/model"
)

// sidecar is the Sidecar of a scope.
type sidecar struct{ scope *catalog.Scope }

// make implements [maker].
func (s sidecar) make() made {
	o := compose.SidecarOf(s.scope)
	return madeOf(o.String(), o.Meta, o.Spec, istio.Paths{Object: s.scope.Path})
}

// workload is the WorkloadEntry of a workload.
type workload struct{ *catalog.Workload }

// make implements [maker].
func (w workload) make() made {
	o := compose.FromWorkload(w.Workload)
	return madeOf(o.String(), o.Meta, o.Spec, istio.Paths{Object: w.Records[0].Path})
}

// carried is an object that is passed on as it came.
type carried struct{ *catalog.Opaque }

// make implements [maker].
func (c carried) make() made {
	return made{c.Meta, istio.Paths{Object: c.Records[0].Path}, c.Type, []byte(c.Content)}
}

// translated is an object that came in JSON.
type translated struct {
	meta model.Meta
	spec proto.Message
	name string
	path model.Path
}

// make implements [maker].
func (t translated) make() made { return madeOf(t.name, t.meta, t.spec, istio.Paths{Object: t.path}) }

// makerOf tells what a carried object of a kind is made of, and what is said of it
// beside that.
func makerOf(o *catalog.Opaque, kind istio.Definition) (maker, model.Meta, error) {
	if o.Type != "" {
		return carried{o}, o.Meta, nil
	}
	read, err := compose.CarriedMessage(o, kind.Message)
	if err != nil {
		return nil, model.Meta{}, err
	}
	return translated{read.Meta, read.Spec, o.Key.String(), o.Records[0].Path}, read.Meta, nil
}

// nameOf is the name of a resource; ok is false if readers could not take it apart.
func nameOf(namespace, name string) (full string, ok bool) {
	full = namespace + "/" + name
	return full, namespace != "" && name != "" && strings.Count(full, "/") == 1
}

const wrongName = "a resource is named namespace/name, and its namespace or name is empty or has a slash; rename it where it comes from"

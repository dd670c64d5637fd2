package write

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// widened returns the action with some of the object's current endpoints added to the
// desired ones, to be kept for a while. An object to be deleted stays for these alone.
func (w *Writes) widened(ctx context.Context, a plan.Action, keep map[uint32]bool) (plan.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	u, err := w.remote.Get(ctx, a.Ref)
	switch {
	case apierrors.IsNotFound(err), err == nil && u.GetResourceVersion() != a.Have.Version:
		return a, errRaced
	case err != nil:
		return a, asRejection(a.Ref, err)
	}
	is := convert.EntryOf(u.Object["spec"])
	a.Reason = "it keeps endpoints until another object contains them"
	if a.Verb == plan.Delete {
		a.Verb, a.Want = plan.Update, object.Object{
			Kind: a.Kind, Namespace: a.Namespace, Name: a.Name, Labels: object.Marks(w.instance),
			Annotations: map[string]string{}, Spec: narrow(is, keep),
		}
		for _, name := range []string{object.AnnotationSources, object.AnnotationService} {
			if value, ok := a.Have.Annotations[name]; ok {
				a.Want.Annotations[name] = value
			}
		}
		return a, nil
	}
	if want, ok := a.Want.Spec.(*networking.ServiceEntry); ok {
		a.Want.Spec, a.Want.Print = widen(want, is, keep), object.Fingerprint{}
	}
	// The next leader must not narrow the object before it knows the kept endpoints.
	a.Want.Annotations = maps.Clone(a.Want.Annotations)
	a.Want.Annotations[object.AnnotationSources] = union(a.Want.Annotations[object.AnnotationSources], a.Have.Annotations[object.AnnotationSources])
	return a, nil
}

// union unites two lists of names.
func union(a, b string) string {
	names := strings.Split(a, ",")
	for name := range strings.SplitSeq(b, ",") {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// narrow reduces a specification to the endpoints to be kept.
func narrow(is *networking.ServiceEntry, keep map[uint32]bool) *networking.ServiceEntry {
	less := proto.CloneOf(is)
	less.Endpoints = slices.DeleteFunc(less.Endpoints, func(e *networking.WorkloadEntry) bool {
		return !keep[object.MemberOf(e).Address()]
	})
	return less
}

// widest bounds the JSON length of a widened specification, well below the size of a
// request.
const widest = compose.MostBytes + compose.MostBytes/4

// widen adds endpoints of an existing specification to a desired one, if possible. With
// different ports, or DNS_ROUND_ROBIN, the desired specification stays unchanged.
func widen(want, is *networking.ServiceEntry, keep map[uint32]bool) *networking.ServiceEntry {
	if want.GetWorkloadSelector() != nil { // a selector excludes endpoints
		return want
	}
	samePorts := slices.EqualFunc(want.GetPorts(), is.GetPorts(), func(a, b *networking.ServicePort) bool { return proto.Equal(a, b) })
	if !samePorts || want.GetResolution() != is.GetResolution() || want.GetResolution() == networking.ServiceEntry_DNS_ROUND_ROBIN {
		return want
	}
	there, size := map[object.Member]bool{}, len(convert.AppendSpec(nil, want))
	for _, m := range object.MembersOf(want) {
		there[m] = true
	}
	wide := proto.CloneOf(want)
	for _, e := range is.GetEndpoints() {
		m := object.MemberOf(e)
		if there[m] || !keep[m.Address()] {
			continue
		}
		more := len(convert.AppendSpec(nil, e)) + 1
		if len(wide.GetEndpoints()) == compose.MostEndpoints || size+more > widest {
			break // the others are missing for a moment
		}
		wide.Endpoints, size = append(wide.Endpoints, e), size+more
	}
	return wide
}

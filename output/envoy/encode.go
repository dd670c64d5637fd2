package envoy

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// translator is part of every version. It is changed when the meaning of the
// same bytes changes; different bytes have a different version anyway.
const translator = "envoy/1"

// Fields of google.protobuf.Any.
const (
	anyTypeURL = 1
	anyValue   = 2
)

// slot tells a resource from every other through all its revisions. The form
// is that of clusters, which differ by the kind of client; the name alone
// would not do, for the same host may live in several namespaces.
type slot struct {
	row  push.Row
	key  catalog.ServiceKey
	port uint32
	form form

	subset  *policy.Selector // nil for all endpoints
	entered bool             // it is of a gateway, to which the port has another name
}

// Slot implements [push.Subject].
func (s slot) Slot() any { return s }

// common is the slot of a resource that is the same in every form.
func (s slot) common() slot {
	s.form = noForm
	return s
}

func (s slot) clusterName() string {
	if s.entered {
		name, _ := meshName(s.key.Host, s.port, s.subset)
		return name
	}
	return SubsetName(s.key.Host, s.port, s.subset.String())
}

// encode wraps a message as a resource. Marshalling is deterministic, so that
// replicas of one build agree on the version.
func encode(name, url string, m proto.Message) push.Encoded {
	size := proto.Size(m)
	body := make([]byte, 0, anyHeadSize(url, size)+size)
	body, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(appendAnyHead(body, url, size), m)
	if err != nil {
		panic(invariant(name, err))
	}
	return push.Encoded{Name: name, Version: versionOf(body), Body: body}
}

func versionOf(body []byte) push.Version { return push.VersionOf([]byte(translator), body) }

func appendAnyHead(b []byte, url string, size int) []byte {
	return appendHead(appendString(b, anyTypeURL, url), anyValue, size)
}

func anyHeadSize(url string, size int) int { return sizeBytes(len(url)) + sizeBytes(size) - size }

// packed returns a message as the configuration of an extension.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(invariant(string(m.ProtoReflect().Descriptor().FullName()), err))
	}
	return a
}

// invariant explains a failure that cannot happen: marshalling fails on text
// that is not UTF-8 alone, and no such text gets past offer and address.
func invariant(name string, err error) string {
	return fmt.Sprintf("envoy: %s cannot be encoded: %v", name, err)
}

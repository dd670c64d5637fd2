package source

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Baseline is the data of a source in another system than the store. An example is an
// API server that an output writes to. A process that restored no records has no
// other data to compare the first listing with.
type Baseline struct {
	// Name identifies the system and its process: judgements for an earlier process
	// do not count.
	Name   string
	Source string
	// With are other sources, all listed by now. The objects belong only to these, to
	// Source, or to sources in With of earlier baselines of this name.
	With    []string
	Where   string // for people: "that are written here"
	Objects []BaselineObject
}

// BaselineObject is a service or a scope in a baseline.
type BaselineObject struct {
	Kind            model.Kind
	Namespace, Name string   // of a service, its host
	Object          string   // for people: "ServiceEntry default/reviews"
	Endpoints       []uint64 // as of [Socket]
}

// Judge judges baselines of sources. The judgements are part of the marks of the
// sources: see [model.Judgement].
type Judge interface {
	// Offer takes a baseline, at any time. It fails only if ctx ends.
	Offer(ctx context.Context, b Baseline) error
}

// Socket returns a hash of an endpoint's address, network and port. Collisions are
// very rare.
func Socket(address, network string, port uint32) uint64 {
	if strings.HasPrefix(address, "unix://") {
		port = 0
	}
	h := fnv.New64a()
	h.Write([]byte(address + "|" + network + "|" + strconv.FormatUint(uint64(port), 10)))
	return h.Sum64()
}

// Ref returns the reference of a baseline's object in a source.
func (o BaselineObject) Ref(source string) model.Ref {
	return model.Ref{Kind: o.Kind, Key: model.Key{Source: source, Namespace: o.Namespace, Name: o.Name}}
}

package source

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Baseline is what somebody else than the store has of a source: a system that
// is written to. A process that restored nothing has nothing else to compare the
// first listing with.
type Baseline struct {
	// Name is of who has it, and of its process: what was decided for an earlier one
	// counts for nothing.
	Name   string
	Source string
	// With are other sources, all listed by now. The objects are of none but
	// these, the source, and those that earlier baselines of this name were with.
	With    []string
	Where   string // for people: "that are written here"
	Objects []BaselineObject
}

// BaselineObject is a service or a scope that somebody has.
type BaselineObject struct {
	Kind            model.Kind
	Namespace, Name string   // of a service, its host
	Object          string   // for people: "ServiceEntry default/reviews"
	Endpoints       []uint64 // as of [Socket]
}

// Judge takes what others have of the sources. What is decided comes with the
// marks of the sources: see [model.Judgement].
type Judge interface {
	// Offer takes a baseline, at any time. It fails only if ctx ends.
	Offer(ctx context.Context, b Baseline) error
}

// Socket stands for where an endpoint is served. Two that differ have the same
// once in a great many systems.
func Socket(address, network string, port uint32) uint64 {
	if strings.HasPrefix(address, "unix://") {
		port = 0
	}
	h := fnv.New64a()
	h.Write([]byte(address + "|" + network + "|" + strconv.FormatUint(uint64(port), 10)))
	return h.Sum64()
}

// subject is an object of a baseline, whoever speaks of it.
func (o BaselineObject) subject(source string) model.Ref {
	return model.Ref{Kind: o.Kind, Key: model.Key{Source: source, Namespace: o.Namespace, Name: o.Name}}
}

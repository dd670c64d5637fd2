package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// relation is how a source's cluster relates to the API server that an output writes to.
type relation int

const (
	other   relation = iota // another cluster, or no API server
	same                    // the same cluster
	unknown                 // not known yet
	unsaid                  // an API server answers, but does not identify its cluster
)

// identity identifies an API server.
type identity struct {
	server  apiServer // nil without an API server
	address string    // empty if it cannot be found
	cluster string    // its cluster; empty if it does not identify one
	err     error     // why an identity is incomplete
}

// apiServer is a [source.APIServer] or an [output.APIServer].
type apiServer interface {
	Server() (string, error)
	Identity(ctx context.Context) (string, error)
}

var (
	_ apiServer = source.APIServer(nil)
	_ apiServer = output.APIServer(nil)
)

// askLimit is how long an API server may take to identify its cluster. It also bounds the
// delay of a start.
const askLimit = 3 * time.Second

// locate returns the API server of some settings, without a connection.
func locate(settings any) (i identity) {
	if i.server, _ = settings.(apiServer); i.server != nil {
		i.address, i.err = i.server.Server()
	}
	return i
}

// ask asks an API server for the identity of its cluster.
func (i *identity) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	i.cluster, i.err = i.server.Identity(ctx)
}

// is compares two API servers. Equal addresses prove the same cluster, different ones prove
// nothing. An error explains an uncertain result.
func (i identity) is(o identity) (relation, error) {
	switch {
	case i.address != "" && i.address == o.address:
		return same, nil
	case i.err != nil:
		return unknown, i.err
	case o.err != nil:
		return unknown, o.err
	case i.cluster == "":
		return unsaid, &unsaidError{i.address}
	case o.cluster == "":
		return unsaid, &unsaidError{o.address}
	case i.cluster == o.cluster:
		return same, nil
	}
	return other, nil
}

// unsaidError is of an API server that answers but does not identify its cluster.
type unsaidError struct{ address string }

func (e *unsaidError) Error() string {
	return fmt.Sprintf("%s does not say which cluster it is of, so it is known by its address alone; allow us to get the namespace kube-system there", e.address)
}

// related is a source that reads an API server, or did so before.
type related struct {
	name     string
	read     source.Settings
	relation relation
	before   relation // the relation in effect until then; see [branch.settle]
	err      error
}

// relate determines how sources that read an API server relate to the written one. All API
// servers are asked at once, for at most [askLimit].
func relate(ctx context.Context, written output.APIServer, sources []config.Source) (list []related) {
	ours := locate(written)
	var theirs []*identity
	for _, s := range sources {
		if read, reads := s.Settings.(source.APIServer); reads {
			i := locate(read)
			list, theirs = append(list, related{name: s.Name, read: s.Settings}), append(theirs, &i)
		}
	}
	var asking sync.WaitGroup
	asked := false
	for _, i := range theirs {
		if ours.err == nil && i.err == nil && i.address != ours.address {
			asking.Go(func() { i.ask(ctx) })
			asked = true
		}
	}
	if asked {
		ours.ask(ctx)
	}
	asking.Wait()
	for n, i := range theirs {
		list[n].relation, list[n].err = ours.is(*i)
	}
	return list
}

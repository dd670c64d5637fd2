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

// relation is that of a source to the API server that an output writes to.
type relation int

const (
	other   relation = iota // it reads something else
	same                    // it reads that API server
	unknown                 // that cannot be found out yet
	unsaid                  // one of the two answers, and does not say which cluster it is of
)

// identity is by what an API server is known.
type identity struct {
	server  apiServer // nil if it is none
	address string    // empty if it cannot be found
	cluster string    // which it is of; empty if it does not say so
	err     error     // why the rest is not known
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

// askLimit is how long an API server has to say which cluster it is of. A start waits as
// long at most.
const askLimit = 3 * time.Second

// locate says which API server some settings are of, without speaking to anybody.
func locate(settings any) (i identity) {
	if i.server, _ = settings.(apiServer); i.server != nil {
		i.address, i.err = i.server.Server()
	}
	return i
}

// ask asks an API server for what its address does not say.
func (i *identity) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	i.cluster, i.err = i.server.Identity(ctx)
}

// is compares two API servers. An address alone says only that they are the same. An error
// says why it is not certain what they are.
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

// unsaidError is of an API server that answers and does not say which cluster it is of.
type unsaidError struct{ address string }

func (e *unsaidError) Error() string {
	return fmt.Sprintf("%s does not say which cluster it is of, so it is known by its address alone; allow us to get the namespace kube-system there", e.address)
}

// related is a source that reads an API server, or did so before.
type related struct {
	name     string
	read     source.Settings
	relation relation
	before   relation // what was taken for its relation until then; see [branch.settle]
	err      error
}

// relate finds out how those of some sources that read an API server are related to the
// one that is written to. Nobody is asked for longer than [askLimit], and at once.
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

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// relation is how a source's cluster relates to the cluster that an output writes to.
type relation int

const (
	other   relation = iota // another cluster, or no cluster
	same                    // the same cluster
	unknown                 // not known yet
)

// askLimit is how long an API server may take to make, find or confirm the marker. The
// three steps follow each other, so they delay a start for three times as long at most.
const askLimit = 3 * time.Second

// target is the API server that an output writes to, which sources are compared with.
type target struct {
	output.APIServer
	rehearsed bool // nothing may be written, so no marker is created
}

// related is a source that reads an API server, or did so before.
type related struct {
	name     string
	read     source.Settings
	relation relation
	err      error // why the relation is unknown, or assumed
}

// relate determines how sources that read an API server relate to the written cluster.
// Equal addresses prove the same cluster, different ones prove nothing.
func (t target) relate(ctx context.Context, sources []config.Source) (list []related) {
	ours, err := t.Server()
	asks := false
	for _, s := range sources {
		if read, reads := s.Settings.(source.APIServer); reads {
			theirs, wrong := read.Server()
			one := related{name: s.Name, read: s.Settings, relation: unknown, err: errors.Join(err, wrong)}
			if one.err == nil && ours == theirs {
				one.relation = same
			}
			list, asks = append(list, one), asks || one.isOpen()
		}
	}
	if asks {
		t.compare(ctx, list)
	}
	return list
}

// isOpen reports whether the marker has to decide about a source.
func (r *related) isOpen() bool { return r.relation == unknown && r.err == nil }

// compare has all open sources look for the marker of the written cluster, at once. A
// source that does not see the marker proves nothing if the marker was replaced meanwhile.
func (t target) compare(ctx context.Context, list []related) {
	marker, err := t.mark(ctx)
	found := unknown
	if err == nil && marker.UID == "" {
		found, err = other, fmt.Errorf("the Lease %s/%s that marks the written cluster does not exist yet, so the source is taken for one of another cluster; the first start creates the Lease and compares the clusters", marker.Namespace, marker.Name)
	}
	var looking sync.WaitGroup
	for i := range list {
		switch one := &list[i]; {
		case !one.isOpen():
		case err != nil:
			one.relation, one.err = found, err
		default:
			looking.Go(func() { one.relation, one.err = sees(ctx, one.read.(source.APIServer), marker) }) //nolint:forcetypeassert // see relate
		}
	}
	looking.Wait()
	if err == nil && slices.ContainsFunc(list, func(one related) bool { return one.relation == other }) {
		t.confirm(ctx, list, marker)
	}
}

// confirm has sources of another cluster stay unknown unless the marker still exists.
func (t target) confirm(ctx context.Context, list []related, m source.Marker) {
	exists, err := sees(ctx, t, m)
	if exists == other {
		err = fmt.Errorf("the Lease %s/%s that marks the written cluster was replaced meanwhile; the clusters are compared again", m.Namespace, m.Name)
	}
	for i := range list {
		if err != nil && list[i].relation == other {
			list[i].relation, list[i].err = unknown, err
		}
	}
}

// mark returns the marker of the written cluster.
func (t target) mark(ctx context.Context) (source.Marker, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return t.Mark(ctx, !t.rehearsed)
}

// sees reports whether an API server has the marker.
func sees(ctx context.Context, server source.APIServer, m source.Marker) (relation, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	is, err := server.Sees(ctx, m)
	switch {
	case err != nil:
		return unknown, err
	case is:
		return same, nil
	}
	return other, nil
}

package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// registry is a source that lists services every so often, and fails at times.
type registry struct {
	mu       sync.Mutex
	services map[string]int // endpoints by host
	changes  int
	broken   bool
	listings int // complete listings in this process
	listed   int // changes included in the last listing
}

// Run implements [source.Source].
func (r *registry) Run(ctx context.Context, sink source.Sink) error {
	every := time.NewTicker(20 * time.Second)
	defer every.Stop()
	for {
		now, err := r.list()
		if err != nil {
			return err
		}
		if err := sink.Replace(ctx, model.Listing{Objects: objectsOf(now)}); err != nil {
			return err
		}
		r.set(func() { r.listings++ })
		// Cases: the next listing; a drop to confirm; the end.
		select {
		case <-every.C:
		case <-sink.Relist():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list returns the services that the registry has now.
func (r *registry) list() (map[string]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return nil, errors.New("the registry is broken")
	}
	r.listed = r.changes
	return r.services, nil
}

// set applies a change to the registry.
func (r *registry) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// seen returns the number of listings in this process, and the change that the last
// one shows.
func (r *registry) seen() (listings, change int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listings, r.listed
}

func objectsOf(services map[string]int) (list []model.Object) {
	for _, host := range hosts {
		n, has := services[host]
		if !has {
			continue
		}
		o := model.Object{Record: model.Record{
			Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "ns", Name: host}},
			Spec: model.Service{Hosts: model.ListOf(host)},
		}}
		for i := range n {
			o.Owned = append(o.Owned, model.Record{
				Ref:  model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: "ns", Name: fmt.Sprint(host, "/", i)}},
				Spec: model.Endpoint{Address: address(host, i)},
			})
		}
		list = append(list, o)
	}
	return list
}

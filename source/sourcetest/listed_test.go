package sourcetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// reporter is a registry that reports what changes: services as a whole or endpoint by
// endpoint. Some of what it reports is lost, and then its connections break, too.
type reporter struct {
	mu       sync.Mutex
	services Services
	failing  bool
	number   int
	streams  map[chan report]bool
	// headless has it report the endpoints of what is new, and not that it is.
	headless bool
}

// report is what happened to a service: nil for what is not there.
type report struct {
	host          string
	before, after *Service
}

func newReporter(headless bool) *reporter {
	return &reporter{streams: map[chan report]bool{}, headless: headless}
}

// Open implements [Registry].
func (r *reporter) Open(source.Env) source.Source { return &reported{r} }

// Set implements [Registry].
func (r *reporter) Set(services Services) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.services
	r.services = services
	for _, host := range mirrored {
		was, had := before[host]
		is, has := services[host]
		one := report{host: host}
		if had {
			one.before = &was
		}
		if has {
			one.after = &is
		}
		if had != has || !was.same(is) {
			r.send(one)
		}
	}
}

func (r *reporter) send(one report) {
	for s := range r.streams {
		r.number++
		select {
		case s <- one:
			if r.number%11 > 0 {
				continue
			}
		default:
		}
		delete(r.streams, s)
		close(s) // something is lost
	}
}

// Fail implements [Registry].
func (r *reporter) Fail(int) {
	r.mu.Lock()
	r.failing = true
	r.mu.Unlock()
	r.Disconnect()
}

// Restore implements [Registry].
func (r *reporter) Restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = false
}

// Disconnect implements [Disconnecter].
func (r *reporter) Disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.streams {
		delete(r.streams, s)
		close(s)
	}
}

// Close implements [Registry].
func (r *reporter) Close() { r.Disconnect() }

func (r *reporter) list() (Services, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		return nil, errors.New("the registry fails")
	}
	return r.services, nil
}

func (r *reporter) watch() (Services, chan report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		return nil, nil, errors.New("the registry fails")
	}
	s := make(chan report, 3)
	r.streams[s] = true
	return r.services, s, nil
}

// reported is a source of such a registry.
type reported struct{ registry *reporter }

// Run implements [source.Source].
func (s *reported) Run(ctx context.Context, sink source.Sink) error {
	services, stream, err := s.registry.watch()
	if err != nil {
		return err
	}
	defer func() {
		s.registry.mu.Lock()
		defer s.registry.mu.Unlock()
		delete(s.registry.streams, stream)
	}()
	if err := sink.Replace(ctx, listingOf(services)); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sink.Relist():
			services, err := s.registry.list()
			if err == nil {
				err = sink.Replace(ctx, listingOf(services))
			}
			if err != nil {
				return err
			}
		case one, open := <-stream:
			if !open {
				return errors.New("the connection broke")
			}
			if err := sink.Change(ctx, one.change(s.registry.headless)); err != nil {
				return err
			}
		}
	}
}

// change is what a report says: single endpoints, where it is about the endpoints of
// a service that was there.
func (r report) change(headless bool) (c model.Change) {
	ref := serviceRefOf(r.host)
	switch {
	case r.after == nil:
		c.Deletes = []model.Ref{ref}
	case r.after.Bad:
		c.Rejected = []model.Rejection{{Ref: ref, Object: r.host, Reason: "it is bad"}}
	case r.before == nil && !headless || r.before != nil && r.before.Bad:
		c.Upserts = []model.Object{objectFor(r.host, *r.after)}
	default:
		if r.before != nil {
			for _, rec := range objectFor(r.host, *r.before).Owned {
				c.OwnedDeletes = append(c.OwnedDeletes, rec.Ref)
			}
		}
		for _, rec := range objectFor(r.host, *r.after).Owned {
			rec.Owner = ref
			c.OwnedUpserts = append(c.OwnedUpserts, rec)
		}
	}
	return c
}

func listingOf(services Services) (l model.Listing) {
	for host, service := range services.Sorted() {
		if service.Bad {
			l.Rejected = append(l.Rejected, model.Rejection{Ref: serviceRefOf(host), Object: host, Reason: "it is bad"})
			continue
		}
		l.Objects = append(l.Objects, objectFor(host, service))
	}
	return l
}

func serviceRefOf(host string) model.Ref {
	return model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "ns", Name: host}}
}

func objectFor(host string, service Service) model.Object {
	o := model.Object{Record: model.Record{Ref: serviceRefOf(host), Spec: model.Service{Hosts: model.ListOf(host)}}}
	for _, e := range service.Endpoints {
		o.Owned = append(o.Owned, model.Record{
			Ref:  model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: "ns", Name: host + "/" + e.String()}},
			Spec: model.Endpoint{Address: e.Addr().String(), Ports: model.MapOf(map[string]uint32{"http": uint32(e.Port())})},
		})
	}
	return o
}

func TestListedWithChanges(t *testing.T) {
	t.Parallel()
	RunListed(t, Listed{
		Open: func(testing.TB) Registry { return newReporter(false) }, Faults: []string{"it answers with an error"},
		Lag: 300 * time.Millisecond, Reports: true, Histories: 60,
	})
}

func TestListedWithChangesOfWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	RunListed(t, Listed{
		Open: func(testing.TB) Registry { return newReporter(true) }, Faults: []string{"it answers with an error"},
		Lag: 2 * time.Second, Reports: true, Histories: 60,
	})
}

package watch

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
)

// merged is the merged services as records, in a store of their own. They begin with the first
// reader; until then only the newest snapshot is kept.
type merged struct {
	store *store.Memory
	wake  chan struct{} // holds a token when there is something to commit
	log   *slog.Logger
	ready chan struct{} // closed once the first snapshot is stored
	once  sync.Once     // closes it

	mu      sync.Mutex // guards the rest
	wanted  bool
	newest  *catalog.Snapshot // nil until one is published
	pending catalog.Change    // since the stored snapshot
	begun   bool              // a snapshot is stored, or about to be
}

func newMerged(c store.Config, log *slog.Logger) *merged {
	return &merged{store: store.NewMemory(c), wake: make(chan struct{}, 1), log: log, ready: make(chan struct{})}
}

// publish takes the next snapshot.
func (m *merged) publish(s *catalog.Snapshot, change catalog.Change) {
	m.mu.Lock()
	m.newest = s
	if m.begun {
		m.pending = m.pending.Then(change)
	}
	m.mu.Unlock()
	m.signal()
}

// demand begins to store the merged services.
func (m *merged) demand() {
	m.mu.Lock()
	m.wanted = true
	m.mu.Unlock()
	m.signal()
}

func (m *merged) signal() {
	select {
	case m.wake <- struct{}{}:
	default: // a token is there
	}
}

// follow stores the snapshots until ctx ends. Snapshots that arrive during a commit are
// committed as one. After a failure, which is a mistake here, everything is compared anew.
func (m *merged) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
		snapshot, change, ok := m.take()
		if !ok {
			continue
		}
		if err := m.keep(snapshot, change); err != nil {
			m.log.Error("merged services could not be stored; they are compared anew with the next change; please report this", "err", err)
			m.mu.Lock()
			m.begun = false
			m.mu.Unlock()
		}
	}
}

// take returns the next snapshot to store, and the change that leads to it; nil if everything
// is to be compared.
func (m *merged) take() (s *catalog.Snapshot, change *catalog.Change, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.wanted || m.newest == nil {
		return nil, nil, false
	}
	if m.begun {
		pending := m.pending
		change = &pending
	}
	m.begun, m.pending = true, catalog.Change{}
	return m.newest, change, true
}

// keep stores a snapshot. A panic is an error: it costs the merged services alone.
func (m *merged) keep(s *catalog.Snapshot, change *catalog.Change) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if change != nil {
		return m.commit(m.writes(*change), change.Observed)
	}
	if err := m.compare(s); err != nil {
		return err
	}
	m.once.Do(func() { close(m.ready) })
	return nil
}

// piece bounds the writes of one commit when everything is compared. The first time, there is
// no reader yet.
const piece = 10_000

// compare stores a whole snapshot, whatever is stored.
func (m *merged) compare(s *catalog.Snapshot) error {
	var writes []model.Write
	flush := func(some []model.Write, least int) (err error) {
		if writes = append(writes, some...); len(writes) >= least {
			err = m.commit(writes, time.Time{})
			writes = nil
		}
		return err
	}
	for stored := range m.store.List(model.Filter{Kind: model.KindMergedService}) {
		key := catalog.ServiceKey{Namespace: stored.Namespace, Host: stored.Name}
		if _, stays := s.Service(key); stays {
			continue
		}
		if err := flush(m.removal(key), piece); err != nil {
			return err
		}
	}
	for service := range s.Services() {
		if err := flush(m.replacement(service.Key, service), piece); err != nil {
			return err
		}
	}
	return flush(nil, 1)
}

func (m *merged) commit(writes []model.Write, observed time.Time) error {
	if len(writes) == 0 {
		return nil
	}
	_, err := m.store.Commit(context.Background(), model.Commit{Writes: writes, Observed: observed})
	return err
}

// writes returns the writes of a change.
func (m *merged) writes(change catalog.Change) (writes []model.Write) {
	for key, c := range change.Services {
		switch {
		case c.New == nil:
			writes = append(writes, m.removal(key)...)
		case m.isNew(c.New):
			writes = append(writes, m.replacement(key, c.New)...)
		default:
			writes = append(writes, m.upsert(serviceRecord(c.New)))
			for id := range c.Endpoints {
				writes = append(writes, m.endpoint(c.New, id)...)
			}
		}
	}
	return writes
}

// isNew reports whether all endpoints of a service are to be written: it is not stored, or
// exported to others than before.
func (m *merged) isNew(s *catalog.Service) bool {
	stored, ok := m.store.Get(serviceRef(s.Key))
	if !ok {
		return true
	}
	spec, ok := stored.Spec.(model.MergedService)
	return !ok || !spec.ExportTo.Equal(s.ExportTo)
}

// replacement writes a service and all its endpoints.
func (m *merged) replacement(key catalog.ServiceKey, s *catalog.Service) (writes []model.Write) {
	kept := map[model.Ref]struct{}{}
	for rec := range recordsOf(s) {
		kept[rec.Ref] = struct{}{}
		writes = append(writes, m.upsert(rec))
	}
	for stored := range m.stored(key) {
		if _, stays := kept[stored.Ref]; !stays {
			writes = append(writes, model.Write{Record: stored, Delete: true})
		}
	}
	return writes
}

// removal deletes a service and its endpoints.
func (m *merged) removal(key catalog.ServiceKey) (writes []model.Write) {
	for stored := range m.stored(key) {
		writes = append(writes, model.Write{Record: stored, Delete: true})
	}
	return writes
}

// stored yields the stored records of a service.
func (m *merged) stored(key catalog.ServiceKey) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		if rec, ok := m.store.Get(serviceRef(key)); ok && !yield(rec) {
			return
		}
		endpoints := model.Filter{Kind: model.KindMergedEndpoint, Source: model.MergedSource, Namespace: key.Namespace, Prefix: key.Host + "/"}
		for rec := range m.store.List(endpoints) {
			if !yield(rec) {
				return
			}
		}
	}
}

// endpoint writes one endpoint as a service has it now.
func (m *merged) endpoint(s *catalog.Service, id catalog.EndpointID) []model.Write {
	if e, ok := s.Endpoints(id.ServicePort).Get(id); ok {
		return []model.Write{m.upsert(endpointRecord(s, id.ServicePort, e))}
	}
	if stored, ok := m.store.Get(endpointRef(s.Key, id)); ok {
		return []model.Write{{Record: stored, Delete: true}}
	}
	return nil
}

// upsert writes a record, whatever is stored under its name.
func (m *merged) upsert(rec model.Record) model.Write {
	if stored, ok := m.store.Get(rec.Ref); ok {
		rec.Revision = stored.Revision
	}
	return model.Write{Record: rec}
}

// recordsOf yields the records of a service.
func recordsOf(s *catalog.Service) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		if !yield(serviceRecord(s)) {
			return
		}
		for _, port := range s.Ports {
			for e := range s.Endpoints(port.Number).All() {
				if !yield(endpointRecord(s, port.Number, e)) {
					return
				}
			}
		}
	}
}

func serviceRef(key catalog.ServiceKey) model.Ref {
	return model.Ref{Kind: model.KindMergedService, Key: model.Key{Source: model.MergedSource, Namespace: key.Namespace, Name: key.Host}}
}

func endpointRef(key catalog.ServiceKey, id catalog.EndpointID) model.Ref {
	name := key.Host + "/" + strconv.FormatUint(uint64(id.ServicePort), 10) + "/"
	if id.Network != "" {
		name += id.Network + "/"
	}
	if id.Port == 0 {
		name += id.Address
	} else {
		name += net.JoinHostPort(id.Address, strconv.FormatUint(uint64(id.Port), 10))
	}
	return model.Ref{Kind: model.KindMergedEndpoint, Key: model.Key{Source: model.MergedSource, Namespace: key.Namespace, Name: name}}
}

func serviceRecord(s *catalog.Service) model.Record {
	return model.Record{Ref: serviceRef(s.Key), Path: s.Path(), Spec: model.MergedService{
		Service: model.Service{
			Meta: s.Meta, Hosts: model.ListOf(s.Written()), Addresses: s.Base.Own(), Cluster: s.Base.Cluster, Ports: model.ListOf(s.Ports...),
			Location: s.Location, Resolution: s.Resolution, ExportTo: s.ExportTo, SubjectAltNames: s.SubjectAltNames, Traffic: s.Traffic,
		},
		Sources: model.ListOf(s.Sources()...),
	}}
}

func endpointRecord(s *catalog.Service, servicePort uint32, e catalog.Endpoint) model.Record {
	spec := e.Endpoint
	spec.Network = e.Network
	return model.Record{
		Ref:   endpointRef(s.Key, e.ID(servicePort)),
		Owner: serviceRef(s.Key), Path: e.Path,
		Spec: model.MergedEndpoint{ServicePort: servicePort, Port: e.Port, Endpoint: spec, Source: e.Record.Source, ExportTo: s.ExportTo},
	}
}

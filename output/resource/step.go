package resource

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The kinds that the catalog understands.
const (
	serviceEntry  = "ServiceEntry"
	sidecarObject = "Sidecar"
	workloadEntry = "WorkloadEntry"
)

// step is a change of the index in the making.
type step struct {
	*Translator
	now     *catalog.Snapshot
	edits   map[content]*immutable.Editor[string, *object]
	changed map[slot]struct{}
}

func (s *step) takeAll() {
	keys := map[catalog.ServiceKey]struct{}{}
	for service := range s.now.Services() {
		keys[service.Key] = struct{}{}
	}
	s.putServices(keys)
	namespaces := map[string]struct{}{}
	for scope := range s.now.Scopes() {
		namespaces[scope.Record.Namespace] = struct{}{}
	}
	s.putScopes(namespaces)
	for w := range s.now.Workloads() {
		s.putWorkload(w.Key)
	}
	for o := range s.now.Opaques() {
		s.putOpaque(o.Key)
	}
}

func (s *step) take(c catalog.Change) {
	keys := make(map[catalog.ServiceKey]struct{}, len(c.Services))
	for key := range c.Services {
		keys[key] = struct{}{}
	}
	s.putServices(keys)
	s.putScopes(c.Scopes)
	for key := range c.Workloads {
		s.putWorkload(key)
	}
	for key := range c.Opaques {
		s.putOpaque(key)
	}
}

// finish returns the world after the step.
func (s *step) finish(complete bool) *World {
	if len(s.edits) > 0 {
		next := maps.Clone(s.objects)
		for c, edit := range s.edits {
			next[c] = edit.Map()
		}
		s.objects = next
	}
	return &World{s.table, s.objects, complete}
}

// changes lists the resources that may differ, in the order of their names.
func (s *step) changes() []world.Changed {
	var list []world.Changed
	for _, at := range slices.SortedFunc(maps.Keys(s.changed), slot.compare) {
		for _, row := range s.rows[at.content] {
			list = append(list, world.Changed{Row: row, Name: at.name})
		}
	}
	return list
}

func (s *step) edit(c content) *immutable.Editor[string, *object] {
	if s.edits[c] == nil {
		s.edits[c] = s.objects[c].Edit()
	}
	return s.edits[c]
}

func (s *step) put(at slot, meta model.Meta, m maker) {
	revision, _ := meta.Labels.Get(revisionLabel)
	s.edit(at.content).Set(at.name, &object{at, revision, s.options, m})
	s.changed[at] = struct{}{}
}

func (s *step) drop(at slot) {
	if s.edit(at.content).Delete(at.name) {
		s.changed[at] = struct{}{}
	}
}

// putServices brings some services, and those whose names depend on them, up to date.
func (s *step) putServices(keys map[catalog.ServiceKey]struct{}) {
	concerned := maps.Clone(keys)
	for key := range keys {
		for _, name := range s.claim(key) {
			for _, other := range s.claims[name] {
				concerned[other] = struct{}{}
			}
		}
	}
	for key := range concerned { // first, so that nobody deletes what another has put
		s.dropService(key)
	}
	for key := range concerned {
		s.putService(key)
	}
}

// claim brings the claims of a service up to date and returns those that are no
// longer what they were, before or now.
func (s *step) claim(key catalog.ServiceKey) (changed []qualified) {
	var before, after []qualified
	if known := s.services[key]; known != nil {
		before = known.claims
	}
	if service, ok := s.now.Service(key); ok && !service.Traffic.ClusterLocal {
		after = claimsOf(service)
	}
	if slices.Equal(before, after) {
		return nil
	}
	for _, name := range before {
		s.claims.remove(name, key)
	}
	for _, name := range after {
		s.claims.add(name, key)
	}
	return slices.Concat(before, after)
}

func (s *step) dropService(key catalog.ServiceKey) {
	known := s.services[key]
	if known == nil {
		return
	}
	delete(s.services, key)
	for c := range s.rows {
		if c.kind != serviceEntry {
			continue
		}
		s.note(slot{c, key.String()}, "")
		for _, name := range known.names {
			s.drop(slot{c, name})
		}
	}
}

func (s *step) putService(key catalog.ServiceKey) {
	service, ok := s.now.Service(key)
	if !ok || service.Traffic.ClusterLocal { // nothing says in the object that it is of a cluster
		return
	}
	known := &standing{claims: claimsOf(service)}
	s.services[key] = known
	parts := partsOf(service)
	for end, e := range parts {
		first := s.claims.nameFor(service)
		if end != "" {
			first = compose.NameOf(key.Host)
		}
		known.names = append(known.names, key.Namespace+"/"+first+end)
		for c := range s.rows {
			if c.kind == serviceEntry {
				e.synthetic = c.synthetic
				s.put(slot{c, key.Namespace + "/" + first + end}, service.Meta, e)
			}
		}
	}
	if reason := compose.Invalid(service); reason != "" {
		s.note(slot{content{kind: serviceEntry}, key.String()}, reason)
	}
}

// putScopes brings the Sidecars of some namespaces up to date.
func (s *step) putScopes(namespaces map[string]struct{}) {
	at := content{kind: sidecarObject}
	if s.rows[at] == nil {
		return
	}
	for namespace := range namespaces {
		before := s.scopes[namespace]
		delete(s.scopes, namespace)
		for scope := range s.now.ScopesOf(namespace) {
			name, ok := nameOf(namespace, scope.Record.Name)
			if !ok || slices.Contains(s.scopes[namespace], name) {
				continue // of two sources, the first one's
			}
			s.scopes[namespace] = append(s.scopes[namespace], name)
			s.putScope(slot{at, name}, scope)
		}
		for _, name := range before {
			if !slices.Contains(s.scopes[namespace], name) {
				s.drop(slot{at, name})
			}
		}
	}
}

func (s *step) putScope(at slot, scope *catalog.Scope) {
	if known, ok := s.edit(at.content).View().Get(at.name); ok && known.source == (sidecar{scope}) {
		return
	}
	s.put(at, scope.Meta, sidecar{scope})
}

// putWorkload brings the WorkloadEntry of a workload up to date. One that is not
// healthy is none: the protocol has no status in which to say so.
func (s *step) putWorkload(key catalog.WorkloadKey) {
	at := slot{content{kind: workloadEntry}, key.String()}
	if s.rows[at.content] == nil {
		return
	}
	w, ok := s.now.Workload(key)
	if _, named := nameOf(key.Namespace, key.Name); !ok || !named || w.Endpoint.Health != model.Healthy {
		s.drop(at)
		return
	}
	s.put(at, w.Meta, workload{w})
}

// putOpaque brings a carried object up to date.
func (s *step) putOpaque(key catalog.OpaqueKey) {
	at := slot{content{kind: string(key.Kind)}, key.Namespace + "/" + key.Name}
	if s.rows[at.content] == nil {
		return
	}
	s.note(at, "")
	o, ok := s.now.Opaque(key)
	if !ok {
		s.drop(at)
		return
	}
	if _, ok := nameOf(key.Namespace, key.Name); !ok {
		s.note(at, wrongName)
		return
	}
	m, meta, err := makerOf(o, s.kinds[at.content.kind])
	if err != nil {
		s.drop(at)
		s.note(at, err.Error())
		return
	}
	s.put(at, meta, m)
}

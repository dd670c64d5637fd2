package catalog

// Rejoin returns the change from a snapshot that another builder made to its own
// unpublished one. Equal values in both become the same pointers, so that the change is as
// exact as any other.
func (b *Builder) Rejoin(old *Snapshot) Change {
	next := *b.snapshot
	change := next.rejoin(old)
	next.opaques, change.Opaques = b.opaques.Rejoin(old.opaques, next.opaques)
	next.workloads, change.Workloads = b.byName.Rejoin(old.workloads, next.workloads)
	b.snapshot = &next
	return change
}

// rejoin is [Builder.Rejoin] for all that is not merged of records of one key.
func (s *Snapshot) rejoin(old *Snapshot) Change {
	change := Change{Services: map[ServiceKey]ServiceChange{}}
	change.Primed, change.Judged = compareMarks(old.primed, s.primed)
	for was := range old.Services() {
		if _, ok := s.Service(was.Key); !ok {
			change.Services[was.Key] = ServiceChange{was, nil, was.allEndpoints()}
		}
	}
	for now := range s.Services() {
		was, _ := old.Service(now.Key)
		change.Services[now.Key] = ServiceChange{was, now, now.adopt(was)}
	}
	services := s.services.Edit()
	for now := range s.Services() {
		was := change.Services[now.Key].Old
		now.adoptDivisions(was, func(key ServiceKey) map[uint32]*Endpoints {
			service, _ := s.Service(key)
			return service.joined
		})
		if now.unless(was) == was {
			services.Set(now.Key, was)
			delete(change.Services, now.Key)
		}
	}
	s.services = services.Map()
	s.ports = old.ports
	s.ports = portsAfter(s, change.Services)
	s.scopes, change.Scopes = rejoinScopes(old.scopes, s.scopes)
	return change
}

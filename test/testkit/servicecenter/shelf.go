package servicecenter

import (
	"crypto/sha1"
	"fmt"
)

// tenant is a domain and a project in it: "default/default".
type tenant string

const home tenant = "default/default"

// serviceID is where a version of a service is found.
type serviceID struct {
	tenant tenant
	id     string
}

// name is the common name of all versions of a service. In an index by alias, it holds the
// alias.
type name struct {
	tenant         tenant
	env, app, name string
}

// held is an instance with the revision at which it was last written.
type held struct {
	*Instance // never changed once it is here, only replaced
	rev       int64
}

// shelf holds services and instances: once as they are in the backend, and
// again in each replica as that has seen them last.
type shelf struct {
	services  map[serviceID]*Service // never changed once they are here, only replaced
	names     map[name]map[serviceID]bool
	aliases   map[name]map[serviceID]bool
	instances map[serviceID]map[string]held
}

func newShelf() *shelf {
	return &shelf{
		services:  map[serviceID]*Service{},
		names:     map[name]map[serviceID]bool{},
		aliases:   map[name]map[serviceID]bool{},
		instances: map[serviceID]map[string]held{},
	}
}

func nameOf(t tenant, s *Service) name { return name{t, s.Environment, s.App, s.Name} }

func aliasOf(t tenant, s *Service) name { return name{t, s.Environment, s.App, s.Alias} }

func (s *shelf) putService(at serviceID, v *Service) {
	s.services[at] = v
	index(s.names, nameOf(at.tenant, v), at)
	if v.Alias != "" {
		index(s.aliases, aliasOf(at.tenant, v), at)
	}
}

func (s *shelf) dropService(at serviceID) {
	v, ok := s.services[at]
	if !ok {
		return
	}
	delete(s.services, at)
	unindex(s.names, nameOf(at.tenant, v), at)
	unindex(s.aliases, aliasOf(at.tenant, v), at)
}

func index(in map[name]map[serviceID]bool, n name, at serviceID) {
	if in[n] == nil {
		in[n] = map[serviceID]bool{}
	}
	in[n][at] = true
}

func unindex(in map[name]map[serviceID]bool, n name, at serviceID) {
	delete(in[n], at)
	if len(in[n]) == 0 {
		delete(in, n)
	}
}

func (s *shelf) putInstance(at serviceID, i held) {
	if s.instances[at] == nil {
		s.instances[at] = map[string]held{}
	}
	s.instances[at][i.ID] = i
}

func (s *shelf) dropInstance(at serviceID, id string) {
	delete(s.instances[at], id)
	if len(s.instances[at]) == 0 {
		delete(s.instances, at)
	}
}

// versions are the services of a name, or else of an alias.
func (s *shelf) versions(n name) map[serviceID]bool {
	if found := s.names[n]; len(found) > 0 {
		return found
	}
	return s.aliases[n]
}

// version finds the one service of a name, or alias, and version.
func (s *shelf) version(n name, version string) (serviceID, bool) {
	for at := range s.versions(n) {
		if s.services[at].Version == version {
			return at, true
		}
	}
	return serviceID{}, false
}

// found is the outcome of a find: the instances in no order, and a revision
// that changes whenever they do.
type found struct {
	instances []*Instance
	rev       string
}

func (s *shelf) find(of ...serviceID) found {
	var all []*Instance
	var newest int64
	for _, at := range of {
		for _, i := range s.instances[at] {
			all = append(all, i.Instance)
			newest = max(newest, i.rev)
		}
	}
	return found{all, revision(newest, len(all))}
}

func (s *shelf) findOne(at serviceID, instance string) found {
	i, ok := s.instances[at][instance]
	if !ok {
		return found{nil, revision(0, 0)}
	}
	return found{[]*Instance{i.Instance}, revision(i.rev, 1)}
}

// revision is made as the original makes it, so that it differs from another
// exactly when the original's would.
func revision(newest int64, count int) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "%d.%d,", newest, count)))
}

// newServiceID is the id of a service that brings none. It depends on the
// service's identity only: a service that comes again gets the same.
func newServiceID(t tenant, s *Service) string {
	identity := fmt.Sprintf("/cse-sr/ms/indexes/%s/%s/%s/%s/%s", t, s.Environment, s.App, s.Name, s.Version)
	return fmt.Sprintf("%x", sha1.Sum([]byte(identity)))
}

func (s *shelf) count() int {
	n := 0
	for _, of := range s.instances {
		n += len(of)
	}
	return n
}

func (s *shelf) clone() *shelf {
	c := newShelf()
	for at, v := range s.services {
		c.putService(at, v)
	}
	for at, of := range s.instances {
		for _, i := range of {
			c.putInstance(at, i)
		}
	}
	return c
}

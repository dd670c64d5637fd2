package servicecenter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// findKey identifies a find with a cached result.
type findKey struct {
	name     name
	consumer string
}

// kept is the result of a find, which also answers later ones.
type kept struct {
	found
	of    string // the services that were looked at
	until time.Time
}

// keptFor is how long an outcome is kept, unless a change of it is shown before.
const keptFor = 2 * time.Minute

// lookup is a find, alone or of a batch.
type lookup struct {
	tenant   tenant
	consumer string // service id; none if empty
	key      Key
	rev      string // the client's revision
	fresh    bool   // the backend is to be read
}

func (s *Server) findInstances(c *call) (any, *Error) {
	f, err := s.find(lookup{
		tenant:   c.tenant,
		consumer: c.Header.Get(consumerHeader),
		key:      Key{Environment: c.query("env"), App: c.query("appId"), Name: c.query("serviceName")},
		rev:      c.rev(),
		fresh:    c.isTrue("noCache"),
	})
	if err != nil {
		return nil, err
	}
	return c.unlessKnown(f, instancesAnswer{f.instances})
}

// rev returns the client's revision. It is empty for a client that chooses cache or
// backend, which gets a full answer in any case.
func (c *call) rev() string {
	if c.isTrue("noCache") || c.isTrue("cacheOnly") {
		return ""
	}
	return c.query("rev")
}

// unlessKnown returns the answer to a find, or that the client already has it.
func (c *call) unlessKnown(f found, answer any) (any, *Error) {
	c.header.Set(revisionHeader, f.rev)
	if c.rev() == f.rev {
		return notModified{}, nil
	}
	return answer, nil
}

func (s *Server) find(l lookup) (found, *Error) {
	if err := l.key.validForSearch("FindInstancesRequest"); err != nil {
		return found{}, err
	}
	n := l.key.in(l.tenant)
	if isShared(n) { // the consumer does not matter
		n.env, l.consumer, l.key.Environment = itsEnvironment, "", itsEnvironment
	}
	consumer, at, err := s.consumer(l)
	if err != nil {
		return found{}, err
	}
	n.env = consumer.Environment
	versions := s.cache.versions(n)
	if len(versions) == 0 {
		return found{}, reject(NoService, "Consumer[%s][%s] find provider[%s] failed, provider does not exist",
			l.consumer, path(consumer), strings.Join([]string{n.env, n.app, n.name}, "/"))
	}
	ids := s.accessible(versions, consumer)
	if l.consumer != "" && len(ids) > 0 {
		s.learn(at, nameOf(l.tenant, s.cache.services[ids[0]]))
	}
	return s.consistent(findKey{n, l.consumer}, l, ids, func(in *shelf) found { return in.find(ids...) }), nil
}

// consumer returns the consumer of a lookup. If the client names none, it is an anonymous
// one of the requested environment.
func (s *Server) consumer(l lookup) (*Service, serviceID, *Error) {
	if l.consumer == "" {
		return &Service{Environment: l.key.Environment}, serviceID{}, nil
	}
	at := serviceID{l.tenant, l.consumer}
	v := s.cache.services[at]
	if v == nil {
		return nil, at, reject(NoService, "Consumer[%s] does not exist.", l.consumer)
	}
	return v, at, nil
}

func path(s *Service) string {
	return strings.Join([]string{s.Environment, s.App, s.Name, s.Version}, "/")
}

// accessible are the services that a consumer may see, the oldest version
// first.
func (s *Server) accessible(versions map[serviceID]bool, consumer *Service) []serviceID {
	var ids []serviceID
	for at := range versions {
		v := s.cache.services[at]
		if consumer.ID == "" || v.App == consumer.App || strings.EqualFold(v.Properties["allowCrossApp"], "true") {
			ids = append(ids, at)
		}
	}
	slices.SortFunc(ids, func(a, b serviceID) int {
		return cmp.Compare(s.cache.services[a].Version, s.cache.services[b].Version)
	})
	return ids
}

// consistent answers from the replica's own state, unless the client has another revision:
// then the backend is read, and its answer cached.
func (s *Server) consistent(k findKey, l lookup, of []serviceID, find func(*shelf) found) found {
	if l.fresh {
		return find(s.truth)
	}
	at := fmt.Sprint(of)
	known, ok := s.kept[k]
	if !ok || known.of != at || !time.Now().Before(known.until) {
		known = kept{find(s.seen(of)), at, time.Now().Add(keptFor)}
		s.kept[k] = known
	}
	if l.rev == "" || l.rev == known.rev {
		return known.found
	}
	known.found = find(s.truth)
	s.kept[k] = known
	return known.found
}

// seen returns the replica's state of some services. A service without a seen instance is
// looked up in the backend.
func (s *Server) seen(of []serviceID) *shelf {
	in := &shelf{instances: make(map[serviceID]map[string]held, len(of))}
	for _, at := range of {
		in.instances[at] = s.cache.instances[at]
		if len(in.instances[at]) == 0 {
			in.instances[at] = s.truth.instances[at]
		}
	}
	return in
}

func (s *Server) listInstances(c *call) (any, *Error) {
	f, err := s.findByID(lookup{tenant: c.tenant, consumer: c.Header.Get(consumerHeader), rev: c.rev(), fresh: c.isTrue("noCache")},
		c.service(), "instances", func(in *shelf) found { return in.find(c.service()) })
	if err != nil {
		return nil, err
	}
	return c.unlessKnown(f, instancesAnswer{f.instances})
}

func (s *Server) getInstance(c *call) (any, *Error) {
	l := lookup{tenant: c.tenant, consumer: c.Header.Get(consumerHeader), rev: c.rev(), fresh: c.isTrue("noCache")}
	f, err := s.findOne(l, c.instance())
	if err != nil {
		return nil, err
	}
	return c.unlessKnown(f, instanceAnswer{f.instances[0]})
}

func (s *Server) findOne(l lookup, at instanceID) (found, *Error) {
	what := "instance[" + at.id + "]"
	f, err := s.findByID(l, at.service, what, func(in *shelf) found { return in.findOne(at.service, at.id) })
	if err == nil && len(f.instances) == 0 {
		consumer, _, _ := s.consumer(l)
		err = reject(NoInstance, "Consumer[%s][%s] find provider[%s][%s] %s failed, provider instance does not exist",
			l.consumer, path(consumer), at.service.id, path(s.cache.services[at.service]), what)
	}
	return f, err
}

func (s *Server) findByID(l lookup, at serviceID, what string, find func(*shelf) found) (found, *Error) {
	consumer, _, err := s.consumer(l)
	if err != nil {
		return found{}, err
	}
	v := s.cache.services[at]
	if v == nil {
		return found{}, reject(NoService, "Provider[%s] does not exist.", at.id)
	}
	if consumer.ID != "" && (len(s.accessible(map[serviceID]bool{at: true}, consumer)) == 0 || v.Environment != consumer.Environment) {
		return found{}, reject(NoService, "Consumer[%s][%s] find provider[%s][%s] %s failed, provider instance does not exist",
			l.consumer, path(consumer), at.id, path(v), what)
	}
	n := nameOf(l.tenant, v)
	n.name += "\x00" + at.id + what // no service is called so
	return s.consistent(findKey{n, l.consumer}, l, []serviceID{at}, find), nil
}

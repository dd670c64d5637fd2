package servicecenter

import "strings"

func (s *Server) health(*call) (any, *Error) {
	at, _ := s.cache.version(name{home, itsEnvironment, "default", itself}, "0.0.1")
	return instancesAnswer{s.cache.find(at).instances}, nil
}

func (s *Server) listServices(c *call) (any, *Error) {
	return servicesAnswer{s.visible(c.tenant, c.isTrue("withShared"))}, nil
}

// visible returns the services of a tenant, in no order. Services shared with all tenants
// are excluded unless requested.
func (s *Server) visible(t tenant, withShared bool) []*Service {
	var all []*Service
	for at, v := range s.cache.services {
		if at.tenant == t && (withShared || !isShared(nameOf(t, v))) {
			all = append(all, v)
		}
	}
	return all
}

// isShared holds for the services that each tenant may see.
func isShared(n name) bool {
	return n.tenant == home && n.app == "default" && n.name == itself
}

func (s *Server) getService(c *call) (any, *Error) {
	v := s.cache.services[c.service()]
	if v == nil {
		return nil, reject(NoService, "Service does not exist.")
	}
	return serviceAnswer{v}, nil
}

func (s *Server) existence(c *call) (any, *Error) {
	if c.query("type") != "microservice" {
		return nil, reject(Invalid, "Only micro-service and schema can be used as type.")
	}
	k := Key{Environment: c.query("env"), App: c.query("appId"), Name: c.query("serviceName"), Version: c.query("version")}
	if err := k.validForSearch("GetExistenceRequest"); err != nil {
		return nil, err
	}
	version := field{"Version", k.Version, rule{1, 64, versionPattern, versionForm}}
	if err := check("GetExistenceRequest", version); err != nil {
		return nil, err
	}
	at, ok := s.cache.version(k.in(c.tenant), k.Version)
	if !ok {
		flag := strings.Join([]string{k.Environment, k.App, k.Name, k.Version}, "/")
		return nil, reject(NoService, "%s does not exist.", flag)
	}
	return serviceIDAnswer{at.id}, nil
}

// in is the name that a key stands for in a tenant.
func (k *Key) in(t tenant) name { return name{t, k.Environment, k.App, k.Name} }

func (s *Server) registerService(c *call) (any, *Error) {
	var body serviceBody
	if err := c.decode(&body, "CreateServiceRequest"); err != nil {
		return nil, err
	}
	v := body.Service
	if v == nil {
		return nil, reject(Invalid, "Request body is empty")
	}
	v.fill()
	if err := v.valid(); err != nil {
		return nil, err
	}
	existing, exists := s.truth.version(nameOf(c.tenant, v), v.Version)
	switch {
	case exists && v.ID != "" && v.ID != existing.id:
		return nil, reject(ServiceExists, "ServiceID conflict or found the same service with different id.")
	case exists:
		return serviceIDAnswer{existing.id}, nil
	case v.ID == "":
		v.ID = newServiceID(c.tenant, v)
	case s.truth.services[serviceID{c.tenant, v.ID}] != nil:
		return nil, reject(ServiceExists, "ServiceID conflict or found the same service with different id.")
	}
	s.putService(serviceID{c.tenant, v.ID}, v)
	return serviceIDAnswer{v.ID}, nil
}

func (s *Server) unregisterService(c *call) (any, *Error) {
	force, at := c.query("force"), c.service()
	if force != "" && force != "1" && force != "0" && force != "true" && force != "false" {
		return nil, reject(Invalid, "parameter force must be false or true")
	}
	v := s.cache.services[at]
	switch {
	case v == nil:
		return nil, reject(NoService, "Service does not exist.")
	case nameOf(at.tenant, v) == name{home, itsEnvironment, "default", itself}:
		return nil, reject(Invalid, "not allow to delete service center")
	case force == "1" || force == "true":
	case s.isDependedOn(at, v):
		return nil, reject(DependedOn, "Can not delete this service, other service rely it.")
	case len(s.cache.instances[at]) > 0:
		return nil, reject(HasInstances, "Can not delete the service deployed instance(s).")
	}
	s.dropService(at)
	return nil, nil
}

// isDependedOn holds if another service depends on one.
func (s *Server) isDependedOn(at serviceID, v *Service) bool {
	for _, consumer := range s.consumers(nameOf(at.tenant, v)) {
		if consumer != at {
			return true
		}
	}
	return false
}

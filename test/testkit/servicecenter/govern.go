package servicecenter

type governAnswer struct {
	Services []*detail `json:"allServicesDetail,omitempty"`
}

// detail is a service with its dependencies.
type detail struct {
	Service   *Service   `json:"microService,omitempty"`
	Providers []*Service `json:"providers,omitempty"`
	Consumers []*Service `json:"consumers,omitempty"`
}

// governServices answers as to options=dependencies, whatever the options are.
func (s *Server) governServices(c *call) (any, *Error) {
	var answer governAnswer
	for _, v := range s.visible(c.tenant, c.isTrue("withShared")) {
		service := *v
		service.Schemas = nil
		d := &detail{Service: &service}
		d.Providers, d.Consumers = s.dependencies(serviceID{c.tenant, v.ID})
		answer.Services = append(answer.Services, d)
	}
	return answer, nil
}

// dependencies are others than the service itself.
func (s *Server) dependencies(of serviceID) (providers, consumers []*Service) {
	other := func(at serviceID) *Service {
		if at == of {
			return nil
		}
		return s.cache.services[at]
	}
	for n := range s.rules[of] {
		for at := range s.cache.versions(n) {
			if v := other(at); v != nil {
				providers = append(providers, v)
			}
		}
	}
	for _, at := range s.consumers(nameOf(of.tenant, s.cache.services[of])) {
		if v := other(at); v != nil {
			consumers = append(consumers, v)
		}
	}
	return providers, consumers
}

package servicecenter

import (
	"slices"
	"strings"
)

type governAnswer struct {
	Services   []*detail   `json:"allServicesDetail,omitempty"`
	Statistics *statistics `json:"statistics,omitempty"`
}

// detail is all about a service.
type detail struct {
	Service   *Service    `json:"microService,omitempty"`
	Instances []*Instance `json:"instances,omitempty"`
	Providers []*Service  `json:"providers,omitempty"`
	Consumers []*Service  `json:"consumers,omitempty"`
	Versions  []string    `json:"microServiceVersions,omitempty"`
	Counts    *statistics `json:"statics,omitempty"`
}

type statistics struct {
	Services  *serviceCount  `json:"services,omitempty"`
	Instances *instanceCount `json:"instances,omitempty"`
	Apps      *appCount      `json:"apps,omitempty"`
}

type serviceCount struct {
	Count  int `json:"count,omitempty"`
	Online int `json:"onlineCount,omitempty"`
}

type instanceCount struct {
	Count    int `json:"count,omitempty"`
	ByDomain int `json:"countByDomain,omitempty"`
}

type appCount struct {
	Count int `json:"count,omitempty"`
}

func (s *Server) governServices(c *call) (any, *Error) {
	countOnly := c.query("countOnly")
	if strings.Trim(countOnly, " 01") != "" {
		return nil, reject(Invalid, "parameter countOnly must be 1 or 0")
	}
	options, shared := strings.Split(c.query("options"), ","), c.isTrue("withShared")
	if slices.Contains(options, "all") {
		options = []string{"tags", "instances", "schemas", "dependencies", "statistics"}
	}
	var answer governAnswer
	if slices.Contains(options, "statistics") {
		answer.Statistics = s.statistics(c.tenant, shared)
		if len(options) == 1 {
			return answer, nil
		}
	}
	for _, v := range s.visible(c.tenant, shared) {
		if c.selects(v) {
			answer.Services = append(answer.Services, s.overview(serviceID{c.tenant, v.ID}, options, countOnly == "1"))
		}
	}
	return answer, nil
}

// selects holds for a service that the query does not leave out.
func (c *call) selects(v *Service) bool {
	for _, property := range c.URL.Query()["property"] {
		k, want, _ := strings.Cut(property, ":")
		if have, ok := v.Properties[k]; !ok || have != want {
			return false
		}
	}
	asked := func(parameter, value string) bool { return c.query(parameter) == "" || c.query(parameter) == value }
	return asked("env", v.Environment) && asked("appId", v.App) && asked("serviceName", v.Name)
}

// overview returns the requested options; instances are without their properties.
func (s *Server) overview(at serviceID, options []string, countOnly bool) *detail {
	service := *s.cache.services[at]
	service.Schemas = nil
	d := &detail{Service: &service}
	if countOnly {
		d.Counts = &statistics{}
	}
	if slices.Contains(options, "dependencies") {
		d.Providers, d.Consumers = s.dependencies(at)
	}
	if !slices.Contains(options, "instances") {
		return d
	}
	instances := s.cache.find(at).instances
	if countOnly {
		d.Counts.Instances = &instanceCount{Count: len(instances)}
		return d
	}
	for _, i := range instances {
		bare := *i
		bare.Properties = nil
		d.Instances = append(d.Instances, &bare)
	}
	return d
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

func (s *Server) governService(c *call) (any, *Error) {
	at := c.service()
	v := s.cache.services[at]
	if v == nil {
		return nil, reject(NoService, "Service does not exist.")
	}
	d := &detail{Service: v, Instances: s.cache.find(at).instances}
	d.Providers, d.Consumers = s.dependencies(at)
	for other := range s.cache.names[nameOf(at.tenant, v)] {
		d.Versions = append(d.Versions, s.cache.services[other].Version)
	}
	return map[string]*detail{"service": d}, nil
}

func (s *Server) governApps(c *call) (any, *Error) {
	apps := map[string]bool{}
	for _, v := range s.visible(c.tenant, c.isTrue("withShared")) {
		if env := c.query("env"); env == "" || env == v.Environment {
			apps[v.App] = true
		}
	}
	var answer struct {
		Apps []string `json:"appIds,omitempty"`
	}
	for app := range apps {
		answer.Apps = append(answer.Apps, app)
	}
	return answer, nil
}

func (s *Server) governStatistics(c *call) (any, *Error) {
	return governAnswer{Statistics: s.statistics(c.tenant, false)}, nil
}

// statistics count the services of a name once, however many versions it has.
func (s *Server) statistics(t tenant, shared bool) *statistics {
	apps, services := map[string]bool{}, map[name]bool{}
	instances := 0
	for _, v := range s.visible(t, shared) {
		n := len(s.cache.instances[serviceID{t, v.ID}])
		apps[v.App] = true
		services[nameOf(t, v)] = services[nameOf(t, v)] || n > 0
		instances += n
	}
	online := 0
	for _, on := range services {
		if on {
			online++
		}
	}
	return &statistics{
		&serviceCount{len(services), online},
		&instanceCount{Count: instances, ByDomain: instances},
		&appCount{len(apps)},
	}
}

package servicecenter

import "maps"

// Tenant is a project of a domain. Its methods change the registered data without a
// request, and accept their arguments unchecked.
type Tenant struct {
	backend *backend
	is      tenant
}

// Project is another tenant than default/default.
func (s *Server) Project(domain, project string) *Tenant {
	return &Tenant{s.backend, tenant(domain + "/" + project)}
}

// Register registers a service, or replaces the one with its identity, and
// returns its id.
func (t *Tenant) Register(s Service) string {
	t.backend.mu.Lock()
	defer t.backend.mu.Unlock()
	s.fill()
	if s.ID == "" {
		s.ID = newServiceID(t.is, &s)
	}
	t.backend.putService(serviceID{t.is, s.ID}, &s)
	return s.ID
}

// Unregister removes a service by force, with its instances.
func (t *Tenant) Unregister(service string) {
	t.backend.mu.Lock()
	defer t.backend.mu.Unlock()
	t.backend.dropService(serviceID{t.is, service})
}

// RegisterInstance registers an instance of a service, or replaces the one of
// its id, and returns its id.
func (t *Tenant) RegisterInstance(service string, i Instance) string {
	t.backend.mu.Lock()
	defer t.backend.mu.Unlock()
	at := serviceID{t.is, service}
	i.fill(service)
	if v := t.backend.truth.services[at]; v != nil {
		i.Version = v.Version
	}
	t.backend.putInstance(at, &i)
	t.backend.renew(instanceID{at, i.ID})
	return i.ID
}

// UnregisterInstance removes an instance.
func (t *Tenant) UnregisterInstance(service, instance string) {
	t.backend.mu.Lock()
	defer t.backend.mu.Unlock()
	t.backend.dropInstance(instanceID{serviceID{t.is, service}, instance})
}

// SetStatus changes the status of an instance.
func (t *Tenant) SetStatus(service, instance, status string) {
	t.changeInstance(service, instance, func(i *Instance) { i.Status = status })
}

// SetProperties replaces the properties of an instance.
func (t *Tenant) SetProperties(service, instance string, properties map[string]string) {
	t.changeInstance(service, instance, func(i *Instance) { i.Properties = maps.Clone(properties) })
}

func (t *Tenant) changeInstance(service, instance string, change func(*Instance)) {
	t.backend.mu.Lock()
	defer t.backend.mu.Unlock()
	t.backend.alterInstance(instanceID{serviceID{t.is, service}, instance}, change)
}

// alterInstance is false if there is no such instance.
func (b *backend) alterInstance(at instanceID, change func(*Instance)) bool {
	h, ok := b.truth.instances[at.service][at.id]
	if !ok {
		return false
	}
	next := *h.Instance
	next.ModTimestamp = now()
	change(&next)
	b.putInstance(at.service, &next)
	return true
}

// fill sets the optional fields of a registration.
func (s *Service) fill() {
	defaults(&s.App, "default")
	defaults(&s.Version, "0.0.1")
	defaults(&s.Level, "BACK")
	defaults(&s.Status, "UP")
	s.Timestamp = now()
	s.ModTimestamp = s.Timestamp
	s.Properties = maps.Clone(s.Properties)
}

const (
	defaultInterval, minInterval = 30, 5 // seconds between heartbeats
	defaultTimes, minTimes       = 3, 3  // heartbeats that may be missing
)

func (i *Instance) fill(service string) {
	if i.ID == "" {
		i.ID = newInstanceID()
	}
	i.ServiceID = service
	defaults(&i.Status, "UP")
	i.Timestamp = now()
	i.ModTimestamp = i.Timestamp
	i.Properties = maps.Clone(i.Properties)
	check := HealthCheck{Mode: "push", Interval: defaultInterval, Times: defaultTimes}
	if i.HealthCheck != nil && i.HealthCheck.Mode == "push" {
		check = *i.HealthCheck
		check.Interval = max(check.Interval, minInterval)
		check.Times = max(check.Times, minTimes)
	} else if i.HealthCheck != nil {
		check = *i.HealthCheck
		check.Interval, check.Times = defaultInterval, defaultTimes
	}
	i.HealthCheck = &check
}

func defaults(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// enrolItself registers the service that the original registers of itself.
func (b *backend) enrolItself() {
	(&Tenant{b, home}).Register(Service{
		App: "default", Name: itself, Version: "0.0.1", Alias: itself,
		Environment: itsEnvironment, Properties: map[string]string{"allowCrossApp": "true"},
	})
}

const (
	itself         = "SERVICECENTER"
	itsEnvironment = "development"
)

// enrol registers a replica as an instance of that service. All see it at once,
// and it sends its heartbeats.
func (s *Server) enrol(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := s.truth.version(name{home, itsEnvironment, "default", itself}, "0.0.1")
	i := Instance{HostName: "standin", Endpoints: []string{"rest://" + address + "/"}, Version: "0.0.1"}
	i.fill(at.id)
	s.member = instanceID{at, i.ID}
	h := held{&i, s.next()}
	s.truth.putInstance(at, h)
	for _, r := range s.replicas {
		r.cache.putInstance(at, h)
	}
}

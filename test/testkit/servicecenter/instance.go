package servicecenter

func (s *Server) registerInstance(c *call) (any, *Error) {
	var body instanceBody
	if err := c.decode(&body, ""); err != nil {
		return nil, err
	}
	i, at := body.Instance, c.service()
	if i == nil {
		return nil, reject(Invalid, "field 'RegisterInstanceRequest.Instance' invalid value '<nil>' does not match rule: {Min: 1}")
	}
	i.ServiceID = at.id
	if err := i.valid(); err != nil {
		return nil, err
	}
	// A known instance that sends its id has only sent a heartbeat.
	if i.ID != "" && s.renew(instanceID{at, i.ID}) {
		return instanceIDAnswer{i.ID}, nil
	}
	v := s.truth.services[at]
	if v == nil {
		return nil, reject(NoService, "Invalid 'serviceID' in request body.")
	}
	i.fill(at.id)
	i.Version = v.Version
	s.putInstance(at, i)
	s.renew(instanceID{at, i.ID})
	return instanceIDAnswer{i.ID}, nil
}

func (s *Server) unregisterInstance(c *call) (any, *Error) {
	at := c.instance()
	if _, ok := s.truth.instances[at.service][at.id]; !ok {
		return nil, reject(NoInstance, "Instance's leaseId not exist.")
	}
	s.dropInstance(at)
	return nil, nil
}

const noLease = "leaseId not exist, instance not exist"

func (s *Server) heartbeat(c *call) (any, *Error) {
	if !s.renew(c.instance()) {
		return nil, reject(NoInstance, noLease)
	}
	return nil, nil
}

func (s *Server) putStatus(c *call) (any, *Error) {
	status := c.query("value")
	if err := checkStatus(status); err != nil {
		return nil, err
	}
	return s.change(c, func(i *Instance) { i.Status = status })
}

func (s *Server) putInstanceProperties(c *call) (any, *Error) {
	var body propertiesBody
	if err := c.decode(&body, ""); err != nil {
		return nil, err
	}
	return s.change(c, func(i *Instance) { i.Properties = body.Properties })
}

func (s *Server) change(c *call, change func(*Instance)) (any, *Error) {
	if !s.alterInstance(c.instance(), change) {
		return nil, reject(NoInstance, "Service instance does not exist.")
	}
	return nil, nil
}

package servicecenter

import "slices"

func (s *Server) batchFind(c *call) (any, *Error) {
	if action := c.query("type"); action != "query" {
		return nil, reject(Invalid, "Invalid action: %s", action)
	}
	var request batchRequest
	if err := c.decode(&request, ""); err != nil {
		return nil, err
	}
	if len(request.Services) == 0 && len(request.Instances) == 0 {
		return nil, reject(Invalid, "Required services or instances")
	}
	if err := request.valid(); err != nil {
		return nil, err
	}
	var answer batchAnswer
	consumer := c.Header.Get(consumerHeader)
	for index, of := range request.Services {
		l := lookup{tenant: c.tenant, consumer: consumer, key: *of.Service, rev: of.Rev, fresh: c.isTrue("noCache")}
		f, err := s.find(l)
		if rejection := s.faults.of(*of.Service); rejection != nil {
			err = rejection
		}
		answer.Services = answer.Services.with(index, of.Rev, f, err)
	}
	for index, of := range request.Instances {
		l := lookup{tenant: c.tenant, consumer: consumer, rev: of.Rev, fresh: c.isTrue("noCache")}
		f, err := s.findOne(l, instanceID{serviceID{c.tenant, of.Instance.ServiceID}, of.Instance.InstanceID})
		answer.Instances = answer.Instances.with(index, of.Rev, f, err)
	}
	return answer, nil
}

// with adds the outcome of one find. Failures of a code are said once, with the
// first one's detail.
func (p *batchPart) with(index int, rev string, f found, err *Error) *batchPart {
	if p == nil {
		p = &batchPart{}
	}
	switch {
	case err != nil:
		p.fail(index, err)
	case rev == f.rev:
		p.NotModified = append(p.NotModified, index)
	default:
		p.Updated = append(p.Updated, batchUpdate{index, f.rev, f.instances})
	}
	return p
}

func (p *batchPart) fail(index int, err *Error) {
	at := slices.IndexFunc(p.Failed, func(f *batchFailure) bool { return f.Error.Code == err.Code })
	if at >= 0 {
		p.Failed[at].Indexes = append(p.Failed[at].Indexes, index)
		return
	}
	p.Failed = append(p.Failed, &batchFailure{[]int{index}, reject(err.Code, "%s", err.Error())})
}

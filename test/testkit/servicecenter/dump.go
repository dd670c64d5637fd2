package servicecenter

import "fmt"

// entry is a key of the backend as a replica has seen it.
type entry[V any] struct {
	Key     string `json:"key"`
	Rev     int64  `json:"rev"`
	Cluster string `json:"cluster"`
	Value   V      `json:"value"`
}

type dumped struct {
	Services  []entry[*Service]  `json:"services,omitempty"`
	Indexes   []entry[string]    `json:"serviceIndexes,omitempty"`
	Aliases   []entry[string]    `json:"serviceAliases,omitempty"`
	Rules     []entry[ruleValue] `json:"dependencyRules,omitempty"`
	Instances []entry[*Instance] `json:"instances,omitempty"`
}

type ruleValue struct {
	Dependency []*Key
}

// dump returns the state that this replica has seen, of all tenants. Only the default
// tenant gets it: others get nothing, and no error. Services, their indexes and the rules
// have no revision of their own here.
func (s *Server) dump(c *call) (any, *Error) {
	if c.tenant != home {
		return nil, nil
	}
	var d dumped
	for at, v := range s.cache.services {
		d.service(at, v)
	}
	for at, of := range s.cache.instances {
		for id, i := range of {
			key := fmt.Sprintf("/cse-sr/inst/files/%s/%s/%s", at.tenant, at.id, id)
			d.Instances = append(d.Instances, entry[*Instance]{key, i.rev, "default", i.Instance})
		}
	}
	for consumer, providers := range s.rules {
		d.rules(consumer.tenant, s.truth.services[consumer], providers)
	}
	return map[string]dumped{"cache": d}, nil
}

func (d *dumped) service(at serviceID, v *Service) {
	index := fmt.Sprintf("%s/%s/%s/%s", at.tenant, v.Environment, v.App, v.Name)
	d.Services = append(d.Services, entry[*Service]{fmt.Sprintf("/cse-sr/ms/files/%s/%s", at.tenant, at.id), 1, "default", v})
	d.Indexes = append(d.Indexes, entry[string]{"/cse-sr/ms/indexes/" + index + "/" + v.Version, 1, "default", at.id})
	if v.Alias != "" {
		alias := fmt.Sprintf("/cse-sr/ms/alias/%s/%s/%s/%s/%s", at.tenant, v.Environment, v.App, v.Alias, v.Version)
		d.Aliases = append(d.Aliases, entry[string]{alias, 1, "default", at.id})
	}
}

// rules are there twice: with the consumer, and with each provider.
func (d *dumped) rules(t tenant, consumer *Service, providers map[name]bool) {
	if consumer == nil {
		return
	}
	const anyVersion = "0.0.0+"
	of := fmt.Sprintf("/cse-sr/ms/dep-rules/%s/c/%s", t, path(consumer))
	var all []*Key
	for n := range providers {
		k := &Key{Tenant: string(n.tenant), Environment: n.env, App: n.app, Name: n.name, Version: anyVersion}
		all = append(all, k)
		key := fmt.Sprintf("/cse-sr/ms/dep-rules/%s/p/%s/%s/%s/%s", n.tenant, n.env, n.app, n.name, anyVersion)
		d.Rules = append(d.Rules, entry[ruleValue]{key, 1, "default", ruleValue{[]*Key{keyOf(t, consumer)}}})
	}
	d.Rules = append(d.Rules, entry[ruleValue]{of, 1, "default", ruleValue{all}})
}

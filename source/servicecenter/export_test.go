package servicecenter

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Registered is a service with its instances, as a registry has them.
type Registered struct {
	Environment string        `json:"environment"`
	App         string        `json:"appId"`
	Service     string        `json:"serviceName"`
	Version     string        `json:"version"`
	Instances   []Instance    `json:"instances"`
	Before      model.Service `json:"-"` // its record so far
}

// Convert is what becomes of services at a time.
func Convert(c Config, services []Registered, now time.Time) (source.Listing, error) {
	c = c.withDefaults()
	n, err := newNaming(c)
	if err != nil {
		return source.Listing{}, err
	}
	identity := func(r Registered) Identity { return Identity{c.Project, r.Environment, r.App, r.Service, r.Version} }
	var all []Identity
	for _, r := range services {
		all = append(all, identity(r))
	}
	called := n.assign(all)
	out := source.Listing{Ignored: map[string]int{}}
	for _, i := range called.sorted() {
		at := slices.IndexFunc(services, func(r Registered) bool { return identity(r) == i })
		if reason := called.refused[i]; reason != "" {
			out.Refused = append(out.Refused, refusal(i, reason))
			continue
		}
		r := services[at]
		made := convert(i, called.of[i], r.Instances, knownPorts(r.Before), c.rules(), now)
		out.Objects = append(out.Objects, made.object)
		out.Refused = append(out.Refused, made.refused...)
		if made.left > 0 {
			out.Ignored[ignoredProperties] += made.left
		}
	}
	return out, nil
}

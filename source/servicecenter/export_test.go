package servicecenter

import (
	"context"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Registered is a service with its instances, as a registry has them.
type Registered struct {
	Environment string              `json:"environment"`
	App         string              `json:"appId"`
	Service     string              `json:"serviceName"`
	Version     string              `json:"version"`
	Instances   []registry.Instance `json:"instances"`
	Before      model.Service       `json:"-"` // its record so far
}

// withDefaults gives the fields that are zero their defaults, so that a test
// names those only which it is about.
func (c Config) withDefaults() Config {
	into, from := reflect.ValueOf(&c).Elem(), reflect.ValueOf(DefaultConfig())
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return c
}

// WithDefaults is the same for tests outside of the package.
func WithDefaults(c Config) Config { return c.withDefaults() }

// Convert is what becomes of services at a time.
func Convert(c Config, services []Registered, now time.Time) (model.Listing, error) {
	c = c.withDefaults()
	rules, err := c.rules()
	if err != nil {
		return model.Listing{}, err
	}
	identity := func(r Registered) records.Identity {
		return records.Identity{Project: c.Project, Environment: r.Environment, App: r.App, Service: r.Service, Version: r.Version}
	}
	var all []records.Identity
	for _, r := range services {
		all = append(all, identity(r))
	}
	names := records.NewNaming(rules).Assign(all)
	out := model.Listing{Ignored: map[string]int{}}
	slices.SortFunc(all, records.Identity.Compare)
	for _, i := range slices.Compact(all) {
		at := slices.IndexFunc(services, func(r Registered) bool { return identity(r) == i })
		if reason := names.Rejected[i]; reason != "" {
			out.Rejected = append(out.Rejected, records.Rejection(i, reason))
			continue
		}
		r := services[at]
		made := rules.Convert(i, names.Of[i], r.Instances, records.KnownPorts(r.Before), now)
		out.Objects = append(out.Objects, made.Object)
		out.Rejected = append(out.Rejected, made.Rejected...)
		if made.Left > 0 {
			out.Ignored[records.IgnoredProperties] += made.Left
		}
	}
	return out, nil
}

// DialWith has the source open its connections in another way.
func (s *Source) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.dial = dial
}

func NextRound(poll, took time.Duration, changed, everything bool, random float64) time.Duration {
	return nextRound(poll, took, changed, everything, random)
}

// Assigner names services, each time anew.
func Assigner(c Config, services []Registered) (func(), error) {
	rules, err := new(c.withDefaults()).rules()
	if err != nil {
		return nil, err
	}
	var all []records.Identity
	for _, r := range services {
		all = append(all, records.Identity{Project: "default", Environment: r.Environment, App: r.App, Service: r.Service, Version: r.Version})
	}
	naming := records.NewNaming(rules)
	return func() { naming.Assign(all) }, nil
}

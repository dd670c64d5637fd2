package xds

import (
	"errors"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Debounces delay changes, by type. By default most types are not delayed: a busy client
// takes the newest when it is ready, which batches better. But a control plane reads all of
// a type at each change of it.
type Debounces struct {
	Clusters  ByMode `json:"clusters"`
	Endpoints ByMode `json:"endpoints"`
	Listeners ByMode `json:"listeners"`
	Routes    ByMode `json:"routes"`
	// DNS is for the listener that answers lookups.
	DNS ByMode `json:"dns"`
	// SharedListeners is for the listeners of all services of a port, or of a port of the
	// edge.
	SharedListeners ByMode `json:"sharedListeners"`
	// Configuration is for the types of MCP-over-xDS.
	Configuration ByMode `json:"configuration"`
}

// defaultDebounces returns, for control planes, the delays of the writer to Kubernetes.
// Three kinds of resources are sent whole at each change of one service: routes of a port,
// the answered names, and the hosts that share a listener. While changes keep coming, they
// are sent once a second.
func defaultDebounces() Debounces {
	aggregates := world.Debounce{Quiet: 100 * time.Millisecond, Max: time.Second}
	return Debounces{
		Routes:          ByMode{StateOfTheWorld: aggregates, Delta: aggregates},
		DNS:             ByMode{StateOfTheWorld: aggregates, Delta: aggregates},
		SharedListeners: ByMode{StateOfTheWorld: aggregates, Delta: aggregates},
		Configuration:   ByMode{StateOfTheWorld: world.Debounce{Quiet: time.Second, Max: 10 * time.Second}},
	}
}

// ByMode is a debounce for each of the two ways to take a type.
type ByMode struct {
	StateOfTheWorld world.Debounce `json:"stateOfTheWorld"`
	Delta           world.Debounce `json:"delta"`
}

// rows returns the debounces by field and by the type's name in the protocol.
func (d Debounces) rows() []struct {
	field, typeURL string
	ByMode
} {
	return []struct {
		field, typeURL string
		ByMode
	}{
		{"clusters", wire.ClusterURL, d.Clusters},
		{"endpoints", wire.EndpointURL, d.Endpoints},
		{"listeners", wire.ListenerURL, d.Listeners},
		{"routes", wire.RouteURL, d.Routes},
		{"dns", "dns", d.DNS},
		{"sharedListeners", "sharedListeners", d.SharedListeners},
		{"configuration", "", d.Configuration},
	}
}

// Of returns the debounce of a type, given by its name in the protocol, in a mode. "dns" is
// the listener that answers lookups, and "sharedListeners" are the listeners of many
// services.
func (d Debounces) Of(typeURL string, m world.Mode) world.Debounce {
	if typeURL == wire.VirtualHostURL { // virtual hosts are routes
		typeURL = wire.RouteURL
	}
	for _, row := range d.rows() {
		switch {
		case row.typeURL != typeURL && !(row.typeURL == "" && wire.IsConfiguration(typeURL)):
		case m == world.Delta:
			return row.Delta
		default:
			return row.StateOfTheWorld
		}
	}
	return world.Debounce{}
}

func (d Debounces) validate() error {
	var errs []error
	for _, row := range d.rows() {
		errs = append(errs,
			check("debounce."+row.field+".stateOfTheWorld", row.StateOfTheWorld),
			check("debounce."+row.field+".delta", row.Delta))
	}
	return errors.Join(errs...)
}

func check(field string, d world.Debounce) error {
	var errs []error
	if d.Quiet < 0 {
		errs = append(errs, fmt.Errorf("%s.quiet: must not be below zero; give a duration, such as 1s", field))
	}
	if d.Max < 0 {
		errs = append(errs, fmt.Errorf("%s.max: must not be below zero; give a duration, such as 10s", field))
	}
	if d.Events < 0 {
		errs = append(errs, fmt.Errorf("%s.events: must not be below zero; give a number, such as 1000", field))
	}
	if d.Quiet == 0 && (d.Max > 0 || d.Events > 0) {
		errs = append(errs, fmt.Errorf("%s.quiet: missing; without it max and events have no effect", field))
	}
	return errors.Join(errs...)
}

package registry

import "cmp"

// Key is the subject of a find: all versions of a service.
type Key struct {
	Environment, App, Service string
}

// Compare orders keys by environment, then by app, then by name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Environment, o.Environment), cmp.Compare(k.App, o.App), cmp.Compare(k.Service, o.Service))
}

// Group is the unit of a watch: the services of an app in an environment.
type Group struct{ Environment, App string }

// Group returns the group of a key.
func (k Key) Group() Group { return Group{k.Environment, k.App} }

// Service is one version of a service in the registry's list.
type Service struct {
	Key
	Version string
	ID      string
	Watcher bool // consumer of an Isthmus's watch, so not mirrored
}

// List is the answer to a list of all services.
type List struct {
	Services []Service
	Broken   int  // entries that do not name their service
	bare     bool // the answer has no field at all
}

// Empty reports whether no service is listed.
func (l List) Empty() bool { return len(l.Services) == 0 && l.Broken == 0 }

// Instance is an instance of the registry, as far as it is read.
type Instance struct {
	ID         string            `json:"instanceId"`
	ServiceID  string            `json:"serviceId"`
	Endpoints  []string          `json:"endpoints"`
	HostName   string            `json:"hostName"`
	Status     string            `json:"status"`
	Properties map[string]string `json:"properties"`
	DataCenter DataCenter        `json:"dataCenterInfo"`
	Version    string            `json:"version"`
	Registered Time              `json:"timestamp"`

	// Broken is why the instance could not be read completely; empty if it could.
	Broken string `json:"-"`
}

// DataCenter is the location of an instance.
type DataCenter struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	Zone   string `json:"availableZone"`
}

// Found is the answer of a batch find for one key.
type Found struct {
	Rev       string
	Instances []Instance
	Same      bool  // unchanged since the revision in the request
	Err       error // why there is no answer for this key
}

// Edge records that a consumer uses a provider.
type Edge struct{ Consumer, Provider Service }

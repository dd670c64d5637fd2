package demo

import (
	"slices"
	"strconv"
	"time"
)

// registry is where the backends are announced. It belongs to one goroutine at
// a time, but changed may be called by any.
type registry struct {
	medium
	instances map[string][]instance // by service, as they are to be announced
}

// medium is a kind of registry.
type medium interface {
	// place returns a listen address for a service's nth backend, given the announced
	// instances.
	place(n int, announced []instance) string
	// port is the one under which a service is called.
	port(s service, announced []instance) int
	// write announces the instances of a service, and returns when it did.
	write(s service, all []instance) (time.Time, error)
	// changed returns the time of the last change before a time, by the demo or by its user.
	changed(before time.Time) time.Time
	// where is the place at which one of a service's instances is rejected.
	where(s service, of instance, all []instance) string
	// entry is the source's entry in the configuration.
	entry() string
	words() words
	close()
}

// words are the texts of the tour that differ between registries.
type words struct {
	registry   string // the name of the registry, at the beginning of the tour
	at         string // where it is
	invitation string // the suggestion after the tour
	read       string // how Isthmus reads it
	// The change of a backend, which is %s, of the service in %s.
	add, remove, spoil, fix string
	spoilTitle, fixTitle    string
	rejection               string // the rejected object, and the effect
}

func newRegistry(m medium) *registry {
	return &registry{medium: m, instances: map[string][]instance{}}
}

// put adds an instance to a service, or replaces the one of its name.
func (r *registry) put(s service, i instance) {
	r.drop(s, i.name)
	r.instances[s.name] = append(r.instances[s.name], i)
}

func (r *registry) drop(s service, name string) {
	r.instances[s.name] = slices.DeleteFunc(r.instances[s.name], func(i instance) bool { return i.name == name })
}

func (r *registry) has(s service, name string) bool {
	return slices.ContainsFunc(r.instances[s.name], func(i instance) bool { return i.name == name })
}

// save announces the instances of a service, and returns when it did.
func (r *registry) save(s service) (time.Time, error) { return r.write(s, r.instances[s.name]) }

// target returns the address that a client of a service dials.
func (r *registry) target(s service) string {
	return s.host() + ":" + strconv.Itoa(r.port(s, r.instances[s.name]))
}

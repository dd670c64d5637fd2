package push

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Panics returns the panics that the engine survived, by place. It includes places without
// a panic.
func (e *Engine) Panics() []world.Panic { return e.reader.List() }

// Streams returns the subscribers with an identifier, by age.
func (e *Engine) Streams(id string) []*Subscriber {
	var list []*Subscriber
	for s := range e.all() {
		if s.Info.ID == id {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, byIDAndAge)
	return list
}

// All yields the subscribers, by identifier and age.
func (e *Engine) All() iter.Seq[*Subscriber] {
	list := slices.Collect(e.all())
	slices.SortFunc(list, byIDAndAge)
	return slices.Values(list)
}

// byIDAndAge orders subscribers by identifier, age and protocol.
func byIDAndAge(a, b *Subscriber) int {
	return cmp.Or(cmp.Compare(a.Info.ID, b.Info.ID), a.Info.Since.Compare(b.Info.Since), cmp.Compare(a.Info.Protocol, b.Info.Protocol))
}

// ClientStatus is one subscriber as the admin API shows it.
type ClientStatus struct {
	Info
	Client world.Client
	// Scope names the scope that narrows its view; empty if none does.
	Scope string
	Types []session.TypeStatus
}

// Clients lists the subscribers, by identifier and age.
func (e *Engine) Clients() []ClientStatus {
	var list []ClientStatus
	for s := range e.All() {
		list = append(list, s.status())
	}
	return list
}

// Len returns the number of subscribers.
func (e *Engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers)
}

// typeCounters count the sent responses, resources and bytes of a type, and its NACKs.
type typeCounters struct {
	responses, resources, bytes, nacks atomic.Uint64
	asked                              atomic.Bool // a subscriber has asked for the type
}

func (c *typeCounters) sent(resources, bytes int) {
	c.responses.Add(1)
	c.resources.Add(uint64(resources)) //nolint:gosec // a length is not negative
	c.bytes.Add(uint64(bytes))         //nolint:gosec // as above
}

// Count is the amount that an engine sent of a type since its start.
type Count struct {
	Type                               string
	Responses, Resources, Bytes, NACKs uint64
}

// Counts returns the counts of the types that subscribers have asked for since the start, in
// the order of delivery. The counts of an admitted type end some time after its release.
func (e *Engine) Counts() []Count {
	e.mu.Lock()
	defer e.mu.Unlock()
	table, now := e.table.Load(), time.Now()
	counts := make([]Count, 0, len(table.Order))
	for _, t := range table.Order {
		info := table.types[t]
		if !info.counts.asked.Load() || info.admitted.expired(now) {
			continue
		}
		c := info.counts
		counts = append(counts, Count{info.Name, c.responses.Load(), c.resources.Load(), c.bytes.Load(), c.nacks.Load()})
	}
	return counts
}

// Read returns the newest version of a resource as a client would be sent it, whether or not
// it is connected, but for what people are not shown. It returns nil if no type has the name, if the view of the client has no
// such resource, and if the producer has published nothing.
func (e *Engine) Read(c world.Client, typeName, name string) *world.Encoded {
	table := e.table.Load()
	t, known := table.Named(typeName)
	if !known || table.types[t].producer == nil {
		return nil
	}
	latest := table.types[t].producer.world.Load()
	if latest == nil {
		return nil
	}
	var read *world.Encoded
	row := table.types[t].Row
	e.reader.Attempt(world.PanicResource, name, func() {
		if subject, found := (*latest).Find((*latest).View(row, c), row, name); found {
			encoded := subject.Encode().Visible()
			read = &encoded
		}
	})
	return read
}

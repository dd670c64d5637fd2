package admin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/source"
)

// api answers requests from the parts.
type api struct {
	parts  Parts
	losers *losers
}

func (a api) config(w http.ResponseWriter, _ *http.Request) {
	c := a.parts.Config()
	c.Age = age(time.Now(), c.Loaded)
	reply(w, a.parts.Log, c)
}

func (a api) writers(w http.ResponseWriter, _ *http.Request) {
	list := []output.Writer{}
	for _, r := range a.parts.outputs() {
		if r.Writer != nil {
			list = append(list, *r.Writer)
		}
	}
	reply(w, a.parts.Log, list)
}

func (a api) sources(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	replyList(w, a.parts.Log, func(yield func(Source) bool) {
		for _, supervisor := range a.parts.Sources() {
			if !yield(sourceShape(supervisor.Status(), supervisor.Exchanges(), now)) {
				return
			}
		}
	})
}

func sourceShape(status source.Status, exchanges []source.Exchange, now time.Time) Source {
	out := Source{
		Name: status.Name, Kind: status.Kind, State: string(status.State), Reason: status.Reason,
		Since: status.Since, Age: age(now, status.Since), LastListing: status.LastListing,
		Services: status.Services, Endpoints: status.Endpoints, Held: status.Held, HeldUntil: status.HeldUntil,
		Carried: status.Carried, Ignored: map[string]int{}, Rejected: []Rejected{},
	}
	maps.Copy(out.Ignored, status.Ignored)
	for _, r := range status.Rejected {
		out.Rejected = append(out.Rejected, Rejected{r.Object, r.Where, r.Field, r.Reason})
	}
	for _, n := range status.Notices {
		out.Notices = append(out.Notices, Notice(n))
	}
	for _, e := range exchanges {
		shape := Exchange{Type: e.Type, Resources: e.Resources, Echoed: e.Echoed, Received: e.Received, ACKed: e.ACKed, NACKed: e.NACKed, Reason: e.NACK}
		if !e.Last.IsZero() {
			shape.Age = age(now, e.Last)
		}
		out.Exchanges = append(out.Exchanges, shape)
	}
	return out
}

func (a api) services(w http.ResponseWriter, r *http.Request) {
	outputs, snapshot := a.parts.served(), a.parts.Snapshot()
	conflicts := conflictsIn(r.Context(), snapshot, outputs)
	replyList(w, a.parts.Log, func(yield func(Service) bool) {
		for service := range snapshot.Services() {
			shape := serviceShape(service, outputs, unservedOf(service, outputs), conflicts)
			if r.Context().Err() != nil || !yield(shape) {
				return
			}
		}
	})
}

func (a api) service(w http.ResponseWriter, r *http.Request) {
	host, now := r.PathValue("host"), time.Now()
	list, outputs, snapshot := []Service{}, a.parts.served(), a.parts.Snapshot()
	conflicts := conflictsIn(r.Context(), snapshot, outputs)
	for service := range snapshot.ByHost(model.Name(host)) {
		unserved, held := unservedOf(service, outputs), snapshot.Holds(speakers(service)...)
		shape := serviceShape(service, outputs, unserved, conflicts)
		shape.LastChanged, shape.LastChangedAge = service.Changed, age(now, service.Changed)
		shape.Records = contributors(service, held, now)
		shape.Instances = instances(service, unserved, held, now)
		list = append(list, shape)
	}
	if len(list) == 0 {
		unknownService(w, host)
		return
	}
	reply(w, a.parts.Log, list)
}

func unknownService(w http.ResponseWriter, host string) {
	fail(w, http.StatusNotFound, "no service %q; 'isthmus services' lists all, and 'isthmus sources' shows rejected objects", host)
}

func serviceShape(service *catalog.Service, outputs []served, unserved unserved, conflicts conflicts) Service {
	healthy, total := service.Counts()
	out := Service{
		Host: service.Key.Host, Namespace: service.Key.Namespace, Resolution: string(service.Resolution), Traffic: service.Traffic.String(),
		Ports: []Port{}, Sources: service.Sources(), Endpoints: Counts{healthy, total, unserved.count()},
		Revision: service.Revision, Stale: stale(service), Conflicts: conflicts.of(service),
	}
	out.Addresses, out.AddressesOf = service.Base.Addresses.Slice(), service.Base.Sources()
	if written := service.Written(); written != out.Host {
		out.Written = written
	}
	if to := service.ExportTo.Slice(); !slices.Contains(to, "*") {
		out.ExportTo = to
	}
	out.Shares, out.SharesLocality = sharesOf(service), localityOf(service.Split)
	for _, p := range service.Ports {
		shape := Port{Number: p.Number, Name: p.Name, Protocol: p.Protocol}
		if at := service.ResolutionAt(p.Number); at != service.Resolution {
			shape.Resolution = string(at)
		}
		out.Ports = append(out.Ports, shape)
	}
	for _, o := range outputs {
		for _, kind := range o.Kinds {
			if reason := o.NotOffered(service, kind); reason != "" {
				out.NotOffered = append(out.NotOffered, NotOffered{o.name, kind, reason})
			}
		}
	}
	return out
}

// stale counts the records of a service that are not their source's newest version.
func stale(service *catalog.Service) (n int) {
	for _, c := range service.Records {
		if c.Stale != "" {
			n++
		}
	}
	return n
}

// speakers names the sources with records or endpoints of a service.
func speakers(service *catalog.Service) (sources []string) {
	for _, c := range service.Records {
		sources = append(sources, c.Record.Source)
	}
	for _, port := range service.Ports {
		for e := range service.Joined(port.Number).Claims() {
			if !slices.Contains(sources, e.Record.Source) {
				sources = append(sources, e.Record.Source)
			}
		}
	}
	return sources
}

// contributors shows a held record as held, whether or not it is also its source's last
// good version.
func contributors(service *catalog.Service, held model.Holds, now time.Time) []Contributor {
	var list []Contributor
	for _, c := range slices.Concat(service.Records, service.SplitRecords) {
		shape := Contributor{Record: c.Record.String(), Path: slices.Collect(c.Path.Names()), Place: c.Place, LeftOut: c.LeftOut, Stale: c.Stale, Age: age(now, c.Since)}
		if hold, ok := held.Of(c.Record, model.Ref{}); ok {
			shape.Stale, shape.Held, shape.Age = "", hold.Reason, age(now, hold.Since)
		}
		list = append(list, shape)
	}
	return list
}

func instances(service *catalog.Service, unserved unserved, held model.Holds, now time.Time) []EndpointClaim {
	list := []EndpointClaim{}
	shown := map[catalog.EndpointID]bool{}
	for _, port := range service.Ports {
		counts := 0 // the position of the claim that counts for the endpoint
		for e, first := range service.Joined(port.Number).Claims() {
			shape := claimShape(port.Number, e, first)
			_, shape.Held = held.Of(e.Record, e.Owner())
			if first {
				counts = len(list)
				if served, ok := servedBy(service, port.Number, e); ok {
					id := served.ID(port.Number)
					shape.Unserved, shown[id] = unserved[id], true
					if served.Health != e.Health {
						shape.ServedHealth = healthText(served.Health)
					}
				} else if service.IsDivided(port.Number) {
					shape.Unserved = "no backend of the split with a share has it"
				}
			}
			list = append(list, shape)
			if at := e.Changed(); at.After(list[counts].LastChanged) {
				list[counts].LastChanged, list[counts].LastChangedAge = at, age(now, at)
			}
		}
		for e := range service.Endpoints(port.Number).All() { // of other hosts
			if id := e.ID(port.Number); !shown[id] {
				shape := claimShape(port.Number, e, true)
				shape.Unserved = unserved[id]
				list = append(list, shape)
			}
		}
	}
	return list
}

func claimShape(port uint32, e catalog.Endpoint, counts bool) EndpointClaim {
	return EndpointClaim{
		ServicePort: port, Address: e.Address, Also: e.Also.Slice(), Port: e.Port, Health: healthText(e.Health), Record: e.Record.String(), Path: slices.Collect(e.Path.Names()), Counts: counts,
		Labels: e.Labels.Map(), Locality: localityText(e.Locality), Network: e.Network, Node: e.Node, Weight: e.Weight,
	}
}

func healthText(h model.Health) string {
	if h == model.Healthy {
		return "HEALTHY"
	}
	return string(h)
}

func localityText(l model.Locality) string {
	return strings.TrimRight(strings.Join([]string{l.Region, l.Zone, l.SubZone}, "/"), "/")
}

func (a api) clients(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	replyList(w, a.parts.Log, func(yield func(Client) bool) {
		for _, o := range a.parts.served() {
			notices := func(world.Client) []output.Notice { return nil }
			if o.Notices != nil {
				notices = o.Notices(a.parts.Snapshot())
			}
			for _, c := range o.Engine.Clients() {
				shape := clientShape(o.name, c, now)
				for _, n := range notices(c.Client) {
					shape.Notices = append(shape.Notices, Notice(n))
				}
				if !yield(shape) {
					return
				}
			}
		}
	})
}

func clientShape(name string, c push.ClientStatus, now time.Time) Client {
	out := Client{
		ID: c.ID, Output: name, Protocol: c.Protocol, Kind: c.Client.Kind, Namespace: c.Client.Namespace, Scope: c.Scope,
		Identity: c.Identity, Proven: c.Proven, ConnectedSince: c.Since, Age: age(now, c.Since),
		Types: map[string]ClientType{},
	}
	for _, t := range c.Types {
		shape := ClientType{
			State: string(t.State), Reason: t.Reason, Age: age(now, t.Since), Sent: t.Sent, ACKed: t.ACKed,
			Subscribed: t.Subscribed, Held: t.Held, Pending: t.Pending, NACKed: t.NACKs,
			Responses: t.Responses, ACKs: t.ACKs,
		}
		if !t.LastNACK.IsZero() {
			shape.LastNACK = &NACK{t.NACKReason, t.LastNACK, age(now, t.LastNACK)}
		}
		out.Types[t.Type] = shape
	}
	if c.Ignored != "" {
		out.Notices = []Notice{{Object: "node metadata", Text: c.Ignored}}
	}
	return out
}

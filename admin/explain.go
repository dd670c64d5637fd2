package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/source"
)

// Explanation is the way of one call, as GET /api/v1/explain shows it.
type Explanation struct {
	Host   string          `json:"host"`
	Port   uint32          `json:"port"`
	Output string          `json:"output"`
	Client ExplainedClient `json:"client"`
	// State is reached, unreachable, or behind: the newest resources reach the service, but the
	// client does not work with all of them yet.
	State  string `json:"state"`
	Reason string `json:"reason"`         // one sentence about the end of the way
	Next   string `json:"next,omitempty"` // the command or edit that helps
	// Address is the address of the service that an application connects to; empty if any
	// address leads the same way.
	Address   string              `json:"address,omitempty"`
	Records   []Contributor       `json:"records"` // of the service
	Steps     []output.Step       `json:"steps"`
	Conflicts []Conflict          `json:"conflicts,omitempty"` // if the call goes elsewhere
	Resources []ExplainedResource `json:"resources"`           // in the order of the way
}

// The states of an explanation.
const (
	StateReached     = "reached"
	StateUnreachable = "unreachable"
	StateBehind      = "behind"
)

// ExplainedClient is the client of an explained call.
type ExplainedClient struct {
	ID        string            `json:"id,omitempty"` // empty if it is not a connected one
	Kind      string            `json:"kind"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// ExplainedResource is a resource on the way of a call.
type ExplainedResource struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // the newest one; empty if the client is to have none
	// The state of the resource at a connected client, as in [ClientResource].
	Held    string `json:"held,omitempty"` // the version that the client has
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Age     string `json:"age,omitempty"`
	Pending bool   `json:"pending,omitempty"`
}

// explained is the client and the output of a request for explanations.
type explained struct {
	served
	call    output.Call
	client  ExplainedClient
	streams []*push.Subscriber // of a connected client
}

// explainer explains calls.
type explainer struct{ parts Parts }

// serve answers with the way of a call to each port of a host, or to one. The parameters
// are host, port, and a client: its id; or a namespace, labels and a kind.
func (x explainer) serve(w http.ResponseWriter, r *http.Request) {
	asked, err := x.asked(r.URL.Query())
	if missing, is := errors.AsType[notConnected](err); is {
		fail(w, http.StatusNotFound, "%v", missing)
		return
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	now, snapshot := time.Now(), x.parts.Snapshot()
	ports := []uint32{asked.call.Port}
	if asked.call.Port == 0 {
		ports = x.portsOf(asked, snapshot)
	}
	list := []Explanation{}
	for _, port := range ports {
		asked.call.Port = port
		list = append(list, x.explanation(r.Context(), asked, snapshot, now))
	}
	reply(w, x.parts.Log, list)
}

// portsOf returns the ports of the service that a host names; zero if there is none.
func (x explainer) portsOf(asked explained, snapshot *catalog.Snapshot) (list []uint32) {
	trace := asked.Explain(snapshot, asked.call)
	if trace.Service == nil || len(trace.Service.Ports) == 0 {
		return []uint32{0}
	}
	for _, p := range trace.Service.Ports {
		list = append(list, p.Number)
	}
	return list
}

// notConnected is the error for an unknown client.
type notConnected struct{ id string }

func (n notConnected) Error() string {
	return fmt.Sprintf("no client %q is connected; 'isthmus clients' lists the connected ones, and --namespace and --labels ask for any other", n.id)
}

// asked reads the parameters of a request.
func (x explainer) asked(query url.Values) (e explained, err error) {
	e.call.Host = query.Get("host")
	if e.call.Host == "" {
		return e, errors.New("host is missing: name the host of a service, such as reviews.example.com")
	}
	if text := query.Get("port"); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return e, fmt.Errorf("port %q is not a number from 1 to 65535", text)
		}
		e.call.Port = uint32(port)
	}
	if id := query.Get("client"); id != "" {
		err = e.connected(x.parts.served(), id)
	} else {
		err = e.described(x.parts.served(), query)
	}
	if err != nil {
		return e, err
	}
	if e.call.Port == 0 && e.call.Client.Proxy.Role == "router" {
		return e, errors.New("the client is an edge: name one of its ports, as in " + e.call.Host + ":8443")
	}
	e.client.Kind, e.client.Namespace, e.client.Labels = e.call.Client.Kind, e.call.Client.Namespace, e.call.Client.Labels.Map()
	return e, nil
}

// connected takes the client with an identifier.
func (e *explained) connected(outputs []served, id string) error {
	for _, o := range outputs {
		if e.streams = o.Engine.Streams(id); len(e.streams) > 0 {
			e.served, e.client.ID, e.call.Client = o, id, e.streams[0].Client()
			return nil
		}
	}
	return notConnected{id}
}

// described takes a client that is described by its namespace, labels and kind. It is taken
// for a sidecar if the kind has any.
func (e *explained) described(outputs []served, query url.Values) error {
	var kinds []string
	for _, o := range outputs {
		kinds = append(kinds, o.Kinds...)
		kind := cmp.Or(query.Get("kind"), o.Kinds[0])
		if e.Clients == nil && slices.Contains(o.Kinds, kind) {
			e.served, e.call.Client.Kind = o, kind
		}
	}
	if e.Clients == nil && len(kinds) == 0 {
		return errors.New("no output serves clients; configure outputs.xds, or see 'isthmus writers' for outputs that write into a cluster")
	}
	if e.Clients == nil {
		return fmt.Errorf("kind %q is unknown; there are: %s", query.Get("kind"), strings.Join(kinds, ", "))
	}
	labels := map[string]string{}
	for pair := range strings.SplitSeq(query.Get("labels"), ",") {
		if pair == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return fmt.Errorf("labels: %q is not of the form KEY=VALUE", pair)
		}
		labels[key] = value
	}
	e.call.Client.Namespace, e.call.Client.Labels = query.Get("namespace"), model.MapOf(labels)
	e.call.Client.Proxy.Role = "sidecar"
	return nil
}

// explanation follows one call.
func (x explainer) explanation(ctx context.Context, asked explained, snapshot *catalog.Snapshot, now time.Time) Explanation {
	e := Explanation{
		Host: asked.call.Host, Port: asked.call.Port, Output: asked.name, Client: asked.client,
		State: StateUnreachable, Records: []Contributor{}, Resources: []ExplainedResource{},
	}
	if !asked.Engine.Serves() {
		e.Reason, e.Next = "nothing is served yet, since this Isthmus is not ready", "isthmus status"
		missing := x.parts.Missing()
		if len(missing) == 0 {
			e.Reason, e.Next = "nothing is served yet: the first resources are being made", "ask again in some seconds"
		}
		for _, o := range missing {
			e.Steps = append(e.Steps, output.Step{Stage: "readiness", Text: o.String()})
		}
		return e
	}
	trace := asked.Explain(snapshot, asked.call)
	e.Reason, e.Next, e.Address, e.Steps = trace.Reason, trace.Next, trace.Address, trace.Steps
	var sources []string
	if s := trace.Service; s != nil {
		sources = s.Sources()
		e.Records = contributors(s, snapshot.Holds(speakers(s)...), now)
		if text := sharesText(s, asked.call.Port); text != "" {
			e.Steps = append(e.Steps, output.Step{Stage: "shares", Text: text})
		}
	}
	e.Steps = append(x.unread(sources, now), e.Steps...)
	if trace.Lost {
		e.Conflicts = conflictsIn(ctx, snapshot, []served{asked.served}).of(trace.Service)
	}
	for _, r := range trace.Resources {
		e.Resources = append(e.Resources, asked.resource(r, now))
	}
	if trace.Reaches {
		e.State = StateReached
		e.judge(asked)
		e.behind(asked)
	}
	return e
}

// unread lists the named sources that cannot be read. Without names it lists every source
// that may have an unknown service.
func (x explainer) unread(of []string, now time.Time) (steps []output.Step) {
	for _, supervisor := range x.parts.Sources() {
		s := supervisor.Status()
		switch {
		case of != nil && !slices.Contains(of, s.Name):
		case s.State == source.StateListing || s.State == source.StateStale:
			steps = append(steps, output.Step{Stage: "source", Text: fmt.Sprintf("source %s is %s for %s: %s", s.Name, s.State, age(now, s.Since), s.Reason)})
		case of == nil && len(s.Rejected) > 0:
			steps = append(steps, output.Step{Stage: "source", Text: fmt.Sprintf("source %s rejected %s", s.Name, count(len(s.Rejected), "object"))})
		}
	}
	return steps
}

// resource returns a resource with its state at the client.
func (e explained) resource(r output.ResourceName, now time.Time) ExplainedResource {
	for _, stream := range e.streams {
		if status, ok := stream.Resource(r.Type, r.Name); ok {
			return heldShape(r, status, now)
		}
	}
	return ExplainedResource{Type: r.Type, Name: r.Name, Version: r.Version}
}

// judge looks for resources that the client does not work with in their newest version.
func (e *Explanation) judge(asked explained) {
	if len(asked.streams) == 0 {
		return
	}
	for _, r := range e.Resources {
		switch {
		case r.State == string(session.NACKed):
			e.State = StateBehind
			e.Reason = fmt.Sprintf("the client NACKed %s %s ago, and works with an older version or none: %s", r.Name, r.Age, r.Reason)
			e.Next = "correct the service in its registry; isthmus clients " + quoted(asked.client.ID) + " shows every NACK"
			return
		case r.State == string(session.Waiting):
			e.State = StateBehind
			e.Reason = fmt.Sprintf("the client was sent %s %s ago and has not answered: %s", r.Name, r.Age, r.Reason)
			e.Next = "ask again; if it lasts, look at the client, or restart it"
		case r.State != "" && (r.Pending || r.Version != "" && r.Held != r.Version && e.State == StateReached):
			e.State = StateBehind
			e.Reason = "the newest version of " + r.Name + " is on its way to the client"
			e.Next = "ask again"
		}
	}
}

// behind adds a step about connected clients that NACKed a resource on the way of a described
// client, or have not answered. Views differ, so some of them may concern other calls.
func (e *Explanation) behind(asked explained) {
	if len(asked.streams) > 0 {
		return
	}
	n, first := 0, ""
	for subscriber := range asked.Engine.All() {
		late := func(r ExplainedResource) bool {
			status, ok := subscriber.Resource(r.Type, r.Name)
			return ok && (status.State == session.NACKed || status.State == session.Waiting)
		}
		if i := slices.IndexFunc(e.Resources, late); i >= 0 {
			if n++; n == 1 {
				first = fmt.Sprintf("%s (%s)", subscriber.Info.ID, e.Resources[i].Name)
			}
		}
	}
	if n > 0 {
		e.Steps = append(e.Steps, output.Step{Stage: "clients", Text: fmt.Sprintf("%s NACKed or did not answer a resource on the way, the first is %s; ask with --client", count(n, "connected client"), first)})
	}
}

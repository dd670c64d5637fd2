package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Client speaks to the members of one registry. It keeps to the member that answered
// last. It tries the next one if a member is unreachable, fails, or answers nonsense.
// It belongs to one goroutine.
type Client struct {
	transport *transport
	project   string
	access    *Access
	lists     listCache
}

// NewClient returns a client. The access outlives it, and may serve the next client.
func NewClient(s Settings, a *Access, dial Dialer) (*Client, error) {
	t, err := newTransport(s, a.pauses, dial)
	if err != nil {
		return nil, err
	}
	return &Client{transport: t, project: s.Project, access: a}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.http.CloseIdleConnections() }

// Busy returns how long the registry took to answer, since the last reset.
func (c *Client) Busy() time.Duration { return c.transport.busy }

// ResetBusy begins to measure [Client.Busy] anew.
func (c *Client) ResetBusy() { c.transport.busy = 0 }

// do asks one member after the other until one answers. A request that the registry
// rejects is rejected by every member: the error is a [*rejected].
func (c *Client) do(ctx context.Context, r request) error {
	var problems []string
	for range c.transport.settings.Addresses {
		err := c.ask(ctx, r)
		no, isNo := errors.AsType[*rejected](err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isNo && !no.retry, errors.Is(err, errNoAccess):
			return fmt.Errorf("%s: %w", r.what, err)
		}
		problems = append(problems, c.transport.address()+" "+err.Error())
		c.transport.next()
	}
	return fmt.Errorf("%s: %s", r.what, strings.Join(problems, "; "))
}

// ask asks the member in use, and once more with a new token if the old one is rejected.
func (c *Client) ask(ctx context.Context, r request) error {
	token, err := c.access.token(ctx, c.transport)
	if err != nil {
		return err
	}
	err = c.transport.send(ctx, r, token)
	if no, ok := errors.AsType[*rejected](err); !ok || no.status != http.StatusUnauthorized || !c.access.needed() {
		return err
	}
	c.access.expired(token, err)
	if token, err = c.access.token(ctx, c.transport); err != nil {
		return err
	}
	return c.transport.send(ctx, r, token)
}

// List asks for all services of the project. A member without services sends an empty
// object, so it has to show that it is a Service Center.
func (c *Client) List(ctx context.Context) (list List, err error) {
	err = c.do(ctx, request{
		what: "list the services", method: http.MethodGet, path: []string{c.project, "registry", "microservices"},
		read: func(body []byte) (err error) {
			list, err = c.lists.read(body)
			if err != nil || !list.bare {
				return err
			}
			if err := c.introduce(ctx); err != nil {
				// Whatever the error is, another member may succeed, so it is no rejection.
				return fmt.Errorf("%w; a Service Center without services says so, but this one does not show that it is one: %s",
					lacks("services", body), err.Error())
			}
			return nil
		},
	})
	return list, err
}

// introduce asks the member in use for the members of its registry. Members register
// themselves, so even an empty Service Center names at least one. Any other server
// hardly does.
func (c *Client) introduce(ctx context.Context) error {
	return c.ask(ctx, request{
		method: http.MethodGet, path: []string{c.project, "registry", "health"},
		read: func(body []byte) error {
			var answer struct {
				Instances []Instance `json:"instances"`
			}
			if err := unmarshal(body, &answer); err != nil {
				return err
			}
			if len(answer.Instances) == 0 || answer.Instances[0].ServiceID == "" {
				return errors.New("the response lists no member of the registry; if it is a member, set registry.selfRegister there")
			}
			return nil
		},
	})
}

// find returns the request for the keys of a batch, whose answers go into found.
func (c *Client) find(asked Batch, query string, found *[]Found) request {
	return request{
		what: "find the instances", method: http.MethodPost, path: []string{c.project, "registry", "instances", "action"},
		query: query, body: asked.body,
		read: func(body []byte) (err error) { *found, err = decodeFound(body, len(asked.Asks)); return err },
	}
}

// Find asks for the keys of a batch, in the name of a consumer if one is given. Each
// ask has its answer, in order.
func (c *Client) Find(ctx context.Context, asked Batch, consumer string) (found []Found, err error) {
	r := c.find(asked, "type=query", &found)
	r.consumer = consumer
	err = c.do(ctx, r)
	return found, err
}

// directWithin bounds a direct find. A registry without its backend goes on to
// answer from its cache, but is silent without it.
const directWithin = 2 * time.Second

// FindDirect asks for the keys of a batch without the registry's cache. It asks the
// member in use only: the cached answers remain as a fallback.
func (c *Client) FindDirect(ctx context.Context, asked Batch) (found []Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, directWithin)
	defer cancel()
	err = c.ask(ctx, c.find(asked, "type=query&noCache=1", &found))
	return found, err
}

// Dependencies reads the graph of consumers and providers. Empty tells whether the
// registry lists no services.
func (c *Client) Dependencies(ctx context.Context, empty bool) (edges []Edge, err error) {
	err = c.do(ctx, request{
		what: "read the dependencies", method: http.MethodGet, path: []string{c.project, "govern", "microservices"},
		query: "options=dependencies",
		read:  func(body []byte) (err error) { edges, err = decodeGraph(body, empty); return err },
	})
	return edges, err
}

// Register registers a consumer for the watch of a group, and returns its id, which is
// the same if the consumer exists.
func (c *Client) Register(ctx context.Context, g Group, name string) (id string, err error) {
	body, err := json.Marshal(map[string]any{"service": map[string]any{
		"appId": g.App, "environment": g.Environment, "serviceName": name, "version": "0.0.1", "level": "BACK", "status": "UP",
		"description": "Isthmus is notified of changes through it; it is unregistered when its watch ends",
		"properties":  map[string]string{watcherProperty: "true"},
	}})
	if err != nil { // strings can always be encoded
		panic(err)
	}
	var answer struct {
		ID string `json:"serviceId"`
	}
	err = c.do(ctx, request{
		what: "register the consumer of a watch", method: http.MethodPost, path: []string{c.project, "registry", "microservices"},
		body: body, read: func(body []byte) error { return unmarshal(body, &answer) },
	})
	if err == nil && answer.ID == "" {
		err = errors.New("register the consumer of a watch: the answer has no id")
	}
	return answer.ID, err
}

// Unregister is best effort: the registry keeps a service that others depend on.
func (c *Client) Unregister(ctx context.Context, id string) error {
	return c.do(ctx, request{
		what: "unregister the consumer of a watch", method: http.MethodDelete,
		path: []string{c.project, "registry", "microservices", id},
	})
}

// Watch returns the stream of events for a consumer, from the member in use.
func (c *Client) Watch(ctx context.Context, consumer string) (*Stream, error) {
	token, err := c.access.token(ctx, c.transport)
	if err != nil {
		return nil, err
	}
	r := request{path: []string{c.project, "registry", "microservices", consumer, "watcher"}}
	t := c.transport
	return &Stream{url: r.url(t.address()), header: r.header(t.settings.Domain, token), client: t.http, within: t.settings.Timeout}, nil
}

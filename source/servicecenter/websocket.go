package servicecenter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Limits of a websocket. The registry pings every 30 seconds, as long as the consumer
// is registered. Clients must not ping: the registry answers with a pong that does
// not match, and then neither pings nor checks the consumer any more.
const (
	readTimeout  = 75 * time.Second // without a message from the registry
	largestEvent = 4 << 20
)

var errUnknownConsumer = errors.New("the registry does not know the consumer any more")

func isUnknownConsumer(err error) bool { return errors.Is(err, errUnknownConsumer) }

// longestName is how long the name of a service may be in the registry.
const longestName = 128

// consumerName returns the name of a watch's consumers. No other Isthmus and no other
// source has it, as long as instances differ. The name of a source has no dot.
func consumerName(o Options) string {
	instance := sanitizeWord(o.Instance)
	if instance != o.Instance {
		instance += "-" + shortHash(o.Instance)
	}
	called := "isthmus-watch-" + instance + "." + o.Name
	if len(called) > longestName {
		called = withHash(called, called, longestName)
	}
	return called
}

// register registers a consumer in a group, and returns its id, which is the same if
// the consumer exists.
func (c *client) register(ctx context.Context, g group, called string) (id string, err error) {
	body := mustJSON(map[string]any{"service": map[string]any{
		"appId": g.app, "environment": g.environment, "serviceName": called, "version": "0.0.1", "level": "BACK", "status": "UP",
		"description": "Isthmus is notified of changes through it; it is unregistered when its watch ends",
		"properties":  map[string]string{watcherProperty: "true"},
	}})
	var answer struct {
		ID string `json:"serviceId"`
	}
	err = c.do(ctx, request{
		what: "register the consumer of a watch", method: http.MethodPost, path: []string{c.config.Project, "registry", "microservices"},
		body: []byte(body), read: func(body []byte) error { return unmarshal(body, &answer) },
	})
	if err == nil && answer.ID == "" {
		err = errors.New("register the consumer of a watch: the answer has no id")
	}
	return answer.ID, err
}

// unregister is best effort: the registry keeps a service that others depend on.
func (c *client) unregister(ctx context.Context, id string) error {
	return c.do(ctx, request{
		what: "unregister the consumer of a watch", method: http.MethodDelete,
		path: []string{c.config.Project, "registry", "microservices", id},
	})
}

// stream listens to one websocket. Only hints are shared.
type stream struct {
	url    string
	header http.Header
	client *http.Client
	within time.Duration
	group  group
	hints  *hints
}

func (c *client) stream(g group, consumer, token string, h *hints) *stream {
	r := request{path: []string{c.config.Project, "registry", "microservices", consumer, "watcher"}}
	e := &stream{url: c.url(r), header: http.Header{}, client: c.http, within: c.config.Timeout, group: g, hints: h}
	c.head(e.header, r, token)
	return e
}

// listen opens the websocket and receives events until it ends. The error is never
// nil.
func (e *stream) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(readTimeout, func() { cancel(fmt.Errorf("the registry said nothing on the websocket for %s", readTimeout)) })
	defer timeout.Stop()
	conn, err := e.dial(ctx, func() { timeout.Reset(readTimeout) })
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(largestEvent)
	e.hints.opened(e.group)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fmt.Errorf("the websocket ended: %w", err)
		}
		timeout.Reset(readTimeout)
		if err := e.receive(data); err != nil {
			return err
		}
	}
}

// dial opens the websocket, and calls pinged for every ping from then on.
func (e *stream) dial(ctx context.Context, pinged func()) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, e.url, &websocket.DialOptions{
		HTTPClient: e.client, HTTPHeader: e.header,
		OnPingReceived: func(context.Context, []byte) bool { pinged(); return true },
	})
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("open a websocket: %w", err)
	}
	return conn, nil
}

// receive takes an event. Only its key is used.
func (e *stream) receive(data []byte) error {
	key, err := decodeEvent(data)
	if err != nil {
		return err
	}
	e.hints.received(key)
	return nil
}

// decodeEvent reads the key of an event. Text that is no event is the registry's
// reason for closing.
func decodeEvent(data []byte) (Key, error) {
	var event struct {
		Key *struct {
			Environment string `json:"environment"`
			App         string `json:"appId"`
			Service     string `json:"serviceName"`
		} `json:"key"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Key == nil {
		if text := clip(strings.TrimSpace(string(data))); strings.Contains(text, "not exist") {
			return Key{}, fmt.Errorf("%w: %q", errUnknownConsumer, text)
		}
		return Key{}, fmt.Errorf("the registry says on the websocket: %q", clip(strings.TrimSpace(string(data))))
	}
	return Key(*event.Key), nil
}

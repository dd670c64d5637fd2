package registry

import (
	"context"
	"fmt"
	"net/http"
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

// Stream receives the events of one consumer over a websocket.
type Stream struct {
	url    string
	header http.Header
	client *http.Client
	within time.Duration
}

// Listen opens the websocket and receives events until it ends. It calls opened once
// the registry sends events, and then received with the key of each event. The error is
// never nil.
func (s *Stream) Listen(ctx context.Context, opened func(), received func(Key)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(readTimeout, func() { cancel(fmt.Errorf("no message from the registry on the websocket for %s", readTimeout)) })
	defer timeout.Stop()
	conn, err := s.dial(ctx, func() { timeout.Reset(readTimeout) })
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(largestEvent)
	opened()
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fmt.Errorf("the websocket ended: %w", err)
		}
		timeout.Reset(readTimeout)
		key, err := decodeEvent(data)
		if err != nil {
			return err
		}
		received(key)
	}
}

// dial opens the websocket, and calls pinged for every ping from then on.
func (s *Stream) dial(ctx context.Context, pinged func()) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: s.header,
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

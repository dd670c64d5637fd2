package admin_test

import (
	"context"
	"encoding/json"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// single is a world of one resource, which every client sees.
type single struct{}

func (single) View(world.Row, world.Client) world.View                  { return nil }
func (single) Names(world.View, world.Row) iter.Seq[string]             { return slices.Values([]string{"cart"}) }
func (single) Find(world.View, world.Row, string) (world.Subject, bool) { return single{}, true }
func (single) Complete() bool                                           { return true }
func (single) Slot() any                                                { return "cart" }
func (single) Encode() world.Encoded                                    { return world.Encoded{Name: "cart", Body: []byte("cart")} }

// serveSingle runs an engine over that world until the test ends. It returns its type, too.
func serveSingle(t *testing.T) (engine *push.Engine, row world.Type) {
	t.Helper()
	engine = push.New(push.Config{Workers: 1, Frame: func(world.Encoded) (heads [2][]byte) { return heads }})
	producer := engine.Produce([]world.TypeSpec{{Name: "Cluster"}})
	producer.Publish(world.Update{World: single{}})
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		engine.Run(ctx)
	}()
	t.Cleanup(func() {
		end()
		<-ended
	})
	return engine, producer.Type(0)
}

// statusOf serves the admin API over an output, and returns what asks it for the status.
func statusOf(t *testing.T, clients *output.Clients) func() admin.Status {
	t.Helper()
	listener := bufconn.Listen(64 << 10)
	server := admin.New(admin.Parts{
		Sources: func() []*supervise.Supervisor { return nil }, Snapshot: catalog.Empty,
		Outputs: func(yield func(string, output.Report) bool) {
			yield("xds", output.Report{Clients: clients})
		},
		Config: func() admin.Config { return admin.Config{} }, Missing: func() []admin.Obstacle { return nil }, Stuck: func() string { return "" },
		Metrics: prometheus.NewRegistry(),
	})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Stop(context.Background())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() (s admin.Status) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// A client that is sent a response and does not answer is a finding from a minute on. It
// ends when the client answers, or is restarted.
func TestASilentClientIsAFindingUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, row := serveSingle(t)
		status := statusOf(t, &output.Clients{Engine: engine})
		connect := func() (client *push.Subscriber, answer func()) {
			client = engine.Connect(push.Info{ID: "web-1"}, world.Client{})
			if err := client.Request(session.Request{Type: row, Mode: world.Delta, Wildcard: session.WildcardOn}); err != nil {
				t.Fatal(err)
			}
			response := <-client.Out()
			client.Sent(response)
			return client, func() {
				if err := client.Request(session.Request{Type: row, Mode: world.Delta, Answer: session.Answer{Kind: session.ACK, Serial: response.Serial}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		fine := func(when string) {
			t.Helper()
			if s := status(); s.Wrong || len(s.Findings) > 0 {
				t.Errorf("%s the findings are %+v", when, s.Findings)
			}
		}
		client, answer := connect()
		time.Sleep(59 * time.Second)
		fine("before a minute is over")
		time.Sleep(2 * time.Second)
		s := status()
		if len(s.Findings) != 1 || s.Findings[0].Age != "1m1s" || !strings.Contains(s.Findings[0].Problem, "resources of type Cluster are not answered by 1 client") ||
			s.Findings[0].Next != "look at the client, or restart it; isthmus clients 'web-1' shows what it has" {
			t.Errorf("after a minute the findings are %+v", s.Findings)
		}
		answer()
		fine("after the answer")
		client.Close()
		silent, _ := connect()
		time.Sleep(2 * time.Minute)
		if s := status(); !s.Wrong {
			t.Error("nothing is wrong with a client that is silent again")
		}
		silent.Close()
		restarted, answers := connect()
		answers()
		fine("after the restart")
		restarted.Close()
	})
}

package output

import (
	"context"
	"iter"
	"net"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// Report is how an output stands, as far as it applies to it.
type Report struct {
	// Addr is what the output listens on; nil if it does not.
	Addr net.Addr
	// Clients is nil for an output that has none.
	Clients *Clients
	// Writer is nil for an output that writes nowhere.
	Writer *Writer
	// Certificates are those of its listener; nil without TLS.
	Certificates *certs.Keeper
	// Metrics are measures of its own, with names that begin with "isthmus_".
	Metrics []Metric
}

// Clients is an output that serves clients.
type Clients struct {
	Engine *push.Engine
	Kinds  []string // of clients
	// NotOffered says why clients of a kind do not get a service, or not all of them
	// some of its endpoints; empty if they do.
	NotOffered func(s *catalog.Service, kind string) string
	// Unserved yields the healthy endpoints that no client of any kind is given
	// although the service is offered, and why.
	Unserved func(s *catalog.Service) iter.Seq2[catalog.EndpointID, string]
	// Conflicts returns, for a snapshot, what says of a service which of its claims on
	// clients another service has. Once ctx has ended some may be missing. It is nil for an
	// output whose clients have none.
	Conflicts func(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict
	// Losers yields the services with something that clients have from another service only,
	// each with a conflict as in Conflicts, once for a port or more often. It is cheap enough
	// to be asked often: it may leave out conflicts that would need a look at each endpoint. Once
	// ctx has ended some may be missing. It is nil for an output whose clients have none.
	Losers func(ctx context.Context, now *catalog.Snapshot) iter.Seq2[catalog.ServiceKey, catalog.Conflict]
	// InexactShares says why clients do not give backends exactly the shares of the calls to a
	// service that its split asks for; empty if they do. It is nil for an output that cannot know.
	InexactShares func(s *catalog.Service) string
	// Notices returns, for a snapshot, the effects that a client's words about itself have on
	// the services it can call. It is nil for an output without such effects.
	Notices func(now *catalog.Snapshot) func(c world.Client) []Notice
	// Named returns the resources that clients of a kind may have of a service alone. It is nil
	// for an output without resources of single services.
	Named func(s *catalog.Service, kind string) []ResourceName
	// Authorities names the secret with the roots that clients are to trust; empty if they are
	// sent none.
	Authorities ResourceName
	// Certificates are the certificates that clients were sent; nil if they are sent none.
	Certificates *secrets.Keeper
	// Explain follows a call of a client, connected or not, through its newest resources.
	Explain func(now *catalog.Snapshot, call Call) Trace
}

// Notice is an effect that an operator may not expect although nothing is wrong.
type Notice struct {
	Object string // such as "ports 80, 443"
	Where  string // the setting that decides it; empty if none does
	Text   string // the effect, and how to change it
}

// Metric is one value at the time of a report.
type Metric struct {
	Name, Help string
	Counter    bool // it only grows; else it is a gauge
	Labels     []Label
	Value      float64
}

// Label tells metrics of one name apart.
type Label struct{ Name, Value string }

// Writer is an output that writes into another system, as GET /api/v1/writers
// shows it.
type Writer struct {
	Name string `json:"name"` // of the output
	// State is writing, standby, waiting (for what must be known first) or stale
	// (the system cannot be reached).
	State  string `json:"state"`
	Reason string `json:"reason"` // of the state
	Age    string `json:"age"`    // of the trouble that the reason names
	// Since is when that trouble began; zero without any.
	Since  time.Time `json:"since,omitzero"`
	Leader string    `json:"leader"` // the replica that writes; empty without an election
	// Objects counts those of ours in the system.
	Objects int `json:"objects"`
	// Pending counts what is not known to be in order, and PendingAge is how long
	// the first of it has not been.
	Pending    int    `json:"pending"`
	PendingAge string `json:"pendingAge"`
	// Throttled counts what waits because there is more to write than the configured
	// rate allows, since when, and in which order it goes.
	Throttled       int       `json:"throttled"`
	ThrottledAge    string    `json:"throttledAge"`
	ThrottledReason string    `json:"throttledReason"`
	LastWrite       time.Time `json:"lastWrite,omitzero"`
	// Writes counts by verb: create, update, delete. Drift counts what was restored
	// after others had changed it.
	Writes map[string]uint64 `json:"writes"`
	Drift  uint64            `json:"drift"`
	Failed []WriteFailure    `json:"failed"`
	Held   []HeldObject      `json:"held"`
	// LeftOut is what of a service could not be written.
	LeftOut []Omission `json:"leftOut"`
}

// The states of a writer.
const (
	WriterWriting = "writing"
	WriterStandby = "standby"
	WriterWaiting = "waiting"
	WriterStale   = "stale"
)

// WriteFailure is something that could not be written.
type WriteFailure struct {
	Object string    `json:"object"` // "ServiceEntry default/reviews.example.com"
	Reason string    `json:"reason"` // of the last try, with what to do
	Tries  int       `json:"tries"`
	Since  time.Time `json:"since"`
	Age    string    `json:"age"`
	Next   time.Time `json:"next,omitzero"` // when it is tried again
}

// HeldObject is an object that is left as it is though it should change.
type HeldObject struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
	// Endpoints counts those that it would lose since its source did not list them,
	// and Age is how long that has been known.
	Endpoints int    `json:"endpoints,omitempty"`
	Age       string `json:"age,omitempty"`
}

// Omission says that something of a service is not written.
type Omission struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
	Count  int    `json:"count"` // of endpoints; zero for the whole service
}

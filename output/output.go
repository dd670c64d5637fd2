package output

import (
	"context"
	"iter"
	"log/slog"
	"net"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/secrets"
	"github.com/isthmus-mesh/isthmus/source"
)

// Output takes the catalog somewhere.
type Output interface {
	// Publish takes the next snapshot and the change that led to it; complete says
	// that every source is primed. It has the form that [gate.New] asks for,
	// is called by one goroutine at a time, and does not block.
	Publish(s *catalog.Snapshot, change catalog.Change, complete bool)
	// Run delivers what is published until ctx ends. Then it drains: it lets go of
	// clients and of what it listens on, for [Drain] at most, and returns.
	Run(ctx context.Context) error
	// Report tells how the output stands. Anybody may call it at any time.
	Report() Report
}

// Drain is how long streams and requests may take to end at a stop.
const Drain = 4 * time.Second

// SourceRemover is an output that wants to know which sources have left.
type SourceRemover interface {
	// RemoveSource says that an operator took a source out of the configuration of this
	// process, and that its records are gone. It does not block.
	RemoveSource(source string)
}

// Kind is a kind of output: the row by which it is known.
type Kind struct {
	Name string // its key in the configuration
	// New returns the settings that it has if nothing is said. It is a pointer to a
	// structure, whose fields have their keys as tags for encoding/json.
	New func() Settings
}

// Settings are what the configuration says of one output.
type Settings interface {
	// Validate reports everything that is wrong with the settings themselves, as
	// errors "field: reason" joined by [errors.Join]. It looks neither at the disk
	// nor at the network.
	Validate() error
	// Resolve makes relative paths start from a folder.
	Resolve(dir string)
	// Check reports in the same form what is wrong with the files that the settings name.
	Check() error
	// Warnings lists what is valid, and an operator should know of all the same.
	Warnings() []string
	// String says in a few words where the output goes.
	String() string
	// Open makes the output and binds what it listens on. It serves nobody yet.
	Open(ctx context.Context, env Env) (Output, error)
}

// Listener is the settings of an output that listens.
type Listener interface {
	// ListenAddress is a host and port, or unix:///path.
	ListenAddress() string
}

// Bearer is the settings of an output that takes tokens as proofs of identity, and may have a
// certificate of an authority.
type Bearer interface {
	// TakeTokens says that clients may prove their identity by tokens. It is called before
	// Validate.
	TakeTokens()
	// HaveAuthority lets an authority issue the certificate, unless files of it are set. It is
	// called before Validate.
	HaveAuthority()
}

// Cluster is the settings of an output that knows the DNS domain of a cluster.
type Cluster interface {
	// ClusterDomain is such as cluster.local.
	ClusterDomain() string
}

// APIServer is the settings of an output that writes to a Kubernetes API server. Unless
// it names its sources, those that read the same one are left out: what they say is
// there already.
type APIServer interface {
	// Only returns the names of the written sources; empty means all that do not read the
	// same API server.
	Only() []string
	// Server is the address that is written to; Sees also tells whether a marker is still there.
	source.APIServer
	// Mark returns the marker of the written cluster as it was read back, and creates it if
	// it does not exist. Without create it only looks, and the UID is empty if there is none.
	Mark(ctx context.Context, create bool) (source.Marker, error)
}

// Records reads the store.
type Records interface {
	Get(ref model.Ref) (model.Record, bool)
	// At, ListAfter and WatchFrom are as in [store.Replica].
	At() model.At
	ListAfter(f model.Filter, after model.Ref) (iter.Seq[model.Record], model.At)
	WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error]
}

// Env is what an output is given beside its settings.
type Env struct {
	// Instance marks what this Isthmus owns, and Version is that of the program.
	Instance, Version string
	// Self is the name that the paths of records have of this Isthmus; see [model.Path].
	Self string
	// RootNamespace is where the scopes live that hold for every workload.
	RootNamespace string
	// Sources returns the names of the sources that the catalog is made of now.
	Sources func() []string
	// Records are the records of these sources, for outputs that serve them as they are.
	Records Records
	// States returns the states of the sources. Each new state is among Events.
	States func() []source.Status
	// Restored names the sources of which everything that an earlier process had
	// stored is there from the start.
	Restored []string
	// Judge takes what the system that is written to has of a source; see [source.Judge].
	Judge source.Judge
	// Sent and ACKed are called with how long after its commit a change had been handed
	// to a client's connection, and been ACKed or written.
	Sent, ACKed func(took time.Duration)
	// Identity proves the identities of clients; nil takes certificates alone.
	Identity *identity.Verifier
	// Certificates makes the certificates that clients are sent; nil if none are.
	Certificates secrets.Issuer
	// Servers issues the certificates of listeners without files; nil without an authority.
	Servers certs.Issuer
	// Events takes the events of the output.
	Events *events.Log
	// Listen binds what the output listens on.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	Log    *slog.Logger
}

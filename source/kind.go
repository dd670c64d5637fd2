package source

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/model"
)

// Kind is a kind of registry: the row by which it is known.
type Kind struct {
	Name string // its key in the configuration
	// New returns the settings that a source has if nothing is said. It is a pointer
	// to a structure, whose fields have their keys as tags for encoding/json.
	New func() Settings
	// HoldFor is how long drops are held if nothing is said; zero for as long as in
	// [DefaultHold].
	HoldFor time.Duration
	// Edited says that people edit the registry, as they do files: see [Config].
	Edited bool
	// Local says that the registry is files of this machine, and not of another party. So
	// endpoints at local addresses are taken by default, unless [Only] confines the source.
	Local bool
	// MaxBackoff bounds the wait before a registry that failed is read again.
	MaxBackoff time.Duration
}

// Settings are what the configuration says of one registry.
type Settings interface {
	// Validate reports everything that is wrong with the settings themselves, as
	// errors "field: reason" joined by [errors.Join]. It looks neither at the disk
	// nor at the network.
	Validate() error
	// Resolve makes relative paths start from a folder.
	Resolve(dir string)
	// Check reports in the same form which files and folders that the settings name
	// are missing or cannot be used. A source is started in spite of that, since
	// they may come later.
	Check() error
	// Warnings lists, as "field: reason", what is valid and an operator should know
	// of all the same.
	Warnings() []string
	// Open makes the source. It reads nothing yet.
	Open(env Env) Source
}

// APIServer is the settings of a source that reads a Kubernetes API server.
type APIServer interface {
	// Server is its address, spelled alike for whoever uses it. It speaks to nobody.
	Server() (string, error)
	// Identity asks the server which cluster it is of. The answer is the same at all of
	// its addresses. It is empty if the server does not say so. It may do so later:
	// one that starts denies everything until it has read who may do what.
	Identity(ctx context.Context) (string, error)
}

// Cluster is the settings of a source that reads a cluster.
type Cluster interface {
	// ClusterDomain is the domain of the cluster's DNS, such as cluster.local.
	ClusterDomain() string
}

// Env is what a source is given beside its settings.
type Env struct {
	// Instance and Name are those of this Isthmus and of the source.
	Instance, Name string
	// RootNamespace is that of control planes.
	RootNamespace string
	// Self is the name that the paths of records have of this Isthmus. What came through
	// it is left out.
	Self string
	// Stored yields what the store has of the source at the time.
	Stored func() iter.Seq[model.Record]
	// Once says that one complete listing is all that is wanted, and that nothing
	// may be left in the registry.
	Once bool
	// Memory bounds what the source takes, together with others, to read what the
	// registry says; nil is without bound. Records are not counted.
	Memory *budget.Budget
	Log    *slog.Logger
}

package source

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/model"
)

// Kind is a kind of registry: its row in the table of kinds.
type Kind struct {
	Name string // its key in the configuration
	// New returns the default settings of a source. They are a pointer to a
	// structure, with keys of fields as tags for encoding/json.
	New func() Settings
	// HoldFor is how long drops are held by default; zero for as long as in
	// [DefaultHold].
	HoldFor time.Duration
	// Edited says that people edit the registry, such as files: see [Config].
	Edited bool
	// Local says that the registry is files of this machine, and not of another party. So
	// endpoints at local addresses are allowed by default, unless [Only] confines the source.
	Local bool
	// MaxBackoff bounds the wait before a registry that failed is read again.
	MaxBackoff time.Duration
}

// Settings are the configuration of one registry.
type Settings interface {
	// Validate reports everything that is wrong with the settings themselves, as
	// errors "field: reason" joined by [errors.Join]. It uses neither the disk nor
	// the network.
	Validate() error
	// Resolve makes relative paths start from a folder.
	Resolve(dir string)
	// Check reports in the same form which files and folders of the settings are
	// missing or unusable. A source is started in spite of that, since they may come
	// later.
	Check() error
	// Warnings lists, as "field: reason", valid settings that an operator should know
	// of all the same.
	Warnings() []string
	// Open makes the source. It reads no data yet.
	Open(env Env) Source
}

// APIServer is the settings of a source that reads a Kubernetes API server.
type APIServer interface {
	// Server returns the server's address, spelled alike for every user. It opens no connection.
	Server() (string, error)
	// Sees reports whether the server has the marker: an object with the marker's UID. An
	// error means that this is unknown, and says which right is missing. Only a server
	// that reports another UID, or no such object, lacks the marker.
	Sees(ctx context.Context, m Marker) (bool, error)
}

// Marker is an object that an output puts into the cluster that it writes to. A source with
// that object reads the same cluster, whatever the address. Only the UID is compared: a
// restored backup has objects of the same name.
type Marker struct{ Namespace, Name, UID string }

// Cluster is the settings of a source that reads a cluster.
type Cluster interface {
	// ClusterDomain returns the domain of the cluster's DNS, such as cluster.local.
	ClusterDomain() string
}

// Env is the environment of a source beside its settings.
type Env struct {
	// Instance and Name are the names of this Isthmus and of the source.
	Instance, Name string
	// Self is the name of this Isthmus in the paths of records. Records that came
	// through it are left out.
	Self string
	// Stored yields the present stored records of the source.
	Stored func() iter.Seq[model.Record]
	// Once says that only one complete listing is wanted, and that no data may be
	// left in the registry.
	Once bool
	// Memory bounds the memory that sources take together to read their registries;
	// nil is without bound. Records are not counted.
	Memory *budget.Budget
	Log    *slog.Logger
}

package file

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file/documents"
)

// Source reads one folder. [New] makes it.
type Source struct {
	config Config
	log    *slog.Logger
}

var _ source.Source = (*Source)(nil)

// New returns a source for a valid configuration. The logger gets reasons for
// slowness; faults of files go into the listings.
func New(config Config, log *slog.Logger) *Source {
	return &Source{config: config, log: log}
}

// Run implements [source.Source]. It fails if the folder is missing or unreadable: a
// folder that is gone, or was never mounted, does not show its files.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	pace := s.config.pace.withDefaults()
	f := &follower{
		folder: folder{
			root:      s.config.Path,
			most:      cmp.Or(s.config.folders, mostFolders),
			objects:   istio.Options{Carry: s.config.Carry, Domain: cmp.Or(s.config.domain, istio.DefaultDomain)},
			memory:    s.config.memory,
			watch:     s.config.watch(s.log),
			documents: documents.NewSet(),
		},
		pace:    pace,
		pending: newPending(pace),
		sink:    sink,
		empty:   map[string]time.Time{},
	}
	defer f.watch.Close()
	if s.config.stored != nil {
		f.documents.Inherit(s.config.stored())
	}
	now := time.Now()
	f.rescan = now.Add(f.pace.rescan)
	if err := f.readEverything(ctx, nil, now, now); err != nil {
		return err
	}
	return f.follow(ctx)
}

// Parse returns the listing of a folder with just one file, at place. The listing is
// the one a [Source] would make of the text, without a file system.
func Parse(place string, text []byte) model.Listing {
	set := documents.NewSet()
	set.Apply(map[string]*documents.Version{place: documents.Parse(place, text, istio.Options{Domain: istio.DefaultDomain}, yamlpos.MaxMemory)})
	return set.Listing(nil)
}

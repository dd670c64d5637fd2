package xds

import (
	"context"
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// Translation makes the resources of services. This package carries them without knowledge
// of their content.
type Translation struct {
	Kinds Kinds
	// Settings returns the default settings of the translation.
	Settings func() Settings
	// Named is as in [output.Clients], of proxies.
	Named func(s *catalog.Service, kind string) []output.ResourceName
	// Notices is as in [output.Clients], given the root namespace; nil if there are none.
	Notices func(now *catalog.Snapshot, root string) func(c world.Client) []output.Notice
	// Authorities names the secret with the roots that clients are to trust.
	Authorities output.ResourceName
	// Configuration makes the types that control planes read.
	Configuration Configuration
}

// Settings are the configuration of a translation. They do not change once it has begun.
type Settings interface {
	// Validate is as in [output.Settings].
	Validate() error
	// Domain returns the domain in which services are NAME.NAMESPACE.svc.DOMAIN.
	Domain() string
	// Subsets returns the labels of the subsets of a host, by their names.
	Subsets(host string) map[string]map[string]string
	// FailsOver reports whether clients use the endpoints of a host by distance.
	FailsOver(host string) bool
	// NeedAuthority lists the fields that need certificates from Isthmus.
	NeedAuthority() []string
	// Types returns the table of types, given the debounce of changes of a type.
	Types(debounce func(typeURL string, m world.Mode) world.Debounce) []world.TypeSpec
	// Begin returns the function that makes the step to a snapshot of the catalog, for one
	// output. The keeper has the certificates of clients; nil serves none.
	Begin(keeper *secrets.Keeper) func(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) world.Update
	// Renewed returns the step from a world to one after a renewal of certificates.
	Renewed(w world.World, r secrets.Renewal) world.Update
	// Conflicts is as in [output.Clients].
	Conflicts(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict
	// LoopbackConflicts returns further conflicts, at sidecars with INTERCEPTION_MODE NONE.
	LoopbackConflicts(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict
	// Losers is as in [output.Clients]. Unredirected includes the conflicts at sidecars with
	// INTERCEPTION_MODE NONE.
	Losers(ctx context.Context, now *catalog.Snapshot, unredirected bool) iter.Seq2[catalog.ServiceKey, catalog.Conflict]
	// TakeUnaddressed returns a function that reports whether a host without an address has the
	// connections to addresses of no service.
	TakeUnaddressed() func(host string) bool
	// NotOffered returns a function as in [output.Clients].
	NotOffered() func(s *catalog.Service, kind string) string
	// Unserved returns a function as in [output.Clients].
	Unserved() func(s *catalog.Service) iter.Seq2[catalog.EndpointID, string]
	// InexactShares returns a function as in [output.Clients].
	InexactShares() func(s *catalog.Service) string
	// Explain is as in [output.Clients], given the root namespace and the newest resources of
	// the client.
	Explain(now *catalog.Snapshot, root string, read func(typeURL, name string) *world.Encoded, call output.Call) output.Trace
}

// Configuration makes the resources of MCP-over-xDS. It makes nothing before the first
// client asks, because most clients are proxies.
type Configuration struct {
	Types func(debounce func(typeURL string, m world.Mode) world.Debounce) []world.TypeSpec
	// Begin returns the steps of one output, for an Isthmus of that name in paths.
	Begin func(self string) Steps
	// NotOffered is as in [output.Clients], of every kind that reads configuration. It also
	// reports omitted endpoints.
	NotOffered func(s *catalog.Service) string
}

// Steps makes worlds, each from the previous one. The first contains all of a snapshot.
type Steps interface {
	Step(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) world.Update
	// LeftOut yields objects that cannot be served, with the reason.
	LeftOut() iter.Seq2[string, string]
}

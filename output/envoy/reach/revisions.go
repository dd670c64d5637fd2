package reach

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// SameOffer reports whether two revisions of a service differ in their endpoints at most, as
// far as resources and views depend on them.
func SameOffer(a, b *catalog.Service) bool {
	return a.Definition == b.Definition ||
		a.SameResolutions(b.Definition) && a.Location == b.Location && a.Traffic == b.Traffic && slices.Equal(a.Ports, b.Ports) && SameStanding(a, b) &&
			a.SameAddresses(b.Definition) && (a.Split == nil) == (b.Split == nil) && a.Split.IgnoresLocality() == b.Split.IgnoresLocality()
}

// SameStanding reports whether two revisions of a service are equal in the order of ownership
// and visible in the same namespaces.
func SameStanding(a, b *catalog.Service) bool {
	return a.Standing == b.Standing && a.ExportTo.Equal(b.ExportTo)
}

// Audience returns the namespaces of the views that may contain a revision of a service;
// nil means all. Seen is false if no view contains it.
func Audience(revisions ...*catalog.Service) (namespaces []string, seen bool) {
	for _, s := range revisions {
		if s == nil {
			continue
		}
		if s.ExportTo.Len() == 0 {
			return nil, true
		}
		for to := range s.ExportTo.All() {
			switch to {
			case "*":
				return nil, true
			case "~": // no namespace
			case ".":
				namespaces = append(namespaces, s.Key.Namespace)
			default:
				namespaces = append(namespaces, to)
			}
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), len(namespaces) > 0
}

// Confined reports whether clients use only the endpoints on their node or in their cluster.
func Confined(s *catalog.Service) bool { return s.Traffic.NodeLocal || s.Traffic.ClusterLocal }

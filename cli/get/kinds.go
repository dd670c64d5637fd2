package get

import (
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/spelling"
	"github.com/isthmus-mesh/isthmus/model"
)

// short returns the short word for a kind; empty if it has none.
func short(kind model.Kind) string {
	switch kind {
	case model.KindService:
		return "svc"
	case model.KindEndpoint:
		return "ep"
	case model.KindWorkload:
		return "wl"
	case model.KindMergedService:
		return "msvc"
	case model.KindMergedEndpoint:
		return "mep"
	default:
		return ""
	}
}

// understood returns the plurals of the kinds that Isthmus understands, and carried the
// plurals of kinds that it carries for control planes.
func understood() (plurals []string) {
	for kind := range model.Kinds() {
		plurals = append(plurals, plural(string(kind)))
	}
	return plurals
}

func carried() (plurals []string) {
	for _, d := range istio.Definitions() {
		if !d.IsRead() {
			plurals = append(plurals, plural(d.Name))
		}
	}
	slices.Sort(plurals)
	return slices.Compact(plurals)
}

func plural(kind string) string { return istio.Kind(kind).Resource() }

// kindOf returns the kind that a word means: its name, its plural or a short form, in upper
// or lower case. Objects that are read mean the records that are made of them. Any other word
// is a kind as it stands, because sources may carry kinds that are in no table.
func kindOf(word string) (kind string, known bool) {
	means := func(kind string) bool { return strings.EqualFold(word, kind) || strings.EqualFold(word, plural(kind)) }
	for kind := range model.Kinds() {
		if means(string(kind)) || strings.EqualFold(word, short(kind)) {
			return string(kind), true
		}
	}
	for _, d := range istio.Definitions() {
		switch {
		case means(d.Name) && d.IsRead():
			return string(d.Record), true
		case means(d.Name):
			return d.Name, true
		}
	}
	return word, false
}

// isMerged reports whether records of a kind have no source.
func isMerged(kind string) bool {
	return kind == string(model.KindMergedService) || kind == string(model.KindMergedEndpoint)
}

// unknownKind explains that a word is in no table of kinds.
func unknownKind(word string) string {
	known := understood()
	text := `"` + word + `" is no known kind; the kinds are ` + strings.Join(known, ", ") +
		", and the kinds that sources carry, such as DestinationRule, spelled as in their objects"
	if near := spelling.Nearest(word, append(known, carried()...)); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

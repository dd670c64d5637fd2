package catalog

import "github.com/isthmus-mesh/isthmus/model"

// compareMarks reports whether the set of sources with a mark differs, and whether a source
// has another mark than before.
func compareMarks(old, now map[string]model.SourceMark) (primed, judged bool) {
	primed = len(old) != len(now)
	for source, mark := range now {
		was, ok := old[source]
		primed, judged = primed || !ok, judged || !was.EqualSpec(mark)
	}
	return primed, judged
}

package catalog

import "github.com/isthmus-mesh/isthmus/model"

// compareMarks reports whether other sources have a mark than before, and
// whether a source that had one has another now.
func compareMarks(old, now map[string]model.SourceMark) (primed, judged bool) {
	primed = len(old) != len(now)
	for source, mark := range now {
		was, ok := old[source]
		primed, judged = primed || !ok, judged || !was.EqualSpec(mark)
	}
	return primed, judged
}

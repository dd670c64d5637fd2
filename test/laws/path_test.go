package laws_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// lawInstance is the name that paths have of the process.
const lawInstance = "law"

// drawPath draws the way that an object took through other Isthmuses, if it did. Some began
// here.
func drawPath(t *rapid.T) model.Path {
	return rapid.SampledFrom([]model.Path{"", "", "", "", "", "", "", "east", "east,west", lawInstance + ",east"}).Draw(t, "path")
}

// isEcho reports whether an object came from here. Its source leaves it out, and reports that
// the registry has nothing of its own there.
func isEcho(o model.Object) bool { return o.Record.Path.Has(lawInstance) }

// placed is an object in a place of its own, as sources of other Isthmuses list it.
func placed(o model.Object) model.Object {
	o.Record.Place = placeOf(o.Record.Ref)
	return o
}

func placeOf(ref model.Ref) string { return fmt.Sprint(ref.Kind, "/", ref.Namespace, "/", ref.Name) }

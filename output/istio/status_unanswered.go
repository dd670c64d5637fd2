package istio

import (
	"fmt"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
)

// unansweredAfter is the time of a write in the API server after which it counts as a
// failure, though it may still succeed.
const unansweredAfter = 5 * time.Second

// withUnanswered adds hanging writes to the failures of keys.
func withUnanswered(failing []controller.Failure[Key], late map[Ref]underWay, now time.Time) []controller.Failure[Key] {
	for r, write := range late {
		err := fmt.Errorf("%s: the API server has not answered this write for %s; it is given up after %s, and tried again",
			r, now.Sub(write.since).Round(time.Second), longest)
		if at := slices.IndexFunc(failing, func(f controller.Failure[Key]) bool { return f.Key == write.key }); at >= 0 {
			failing[at].Err = err
			continue
		}
		failing = append(failing, controller.Failure[Key]{Key: write.key, Err: err, Tries: 1, Since: write.since})
	}
	slices.SortFunc(failing, func(a, b controller.Failure[Key]) int { return a.Since.Compare(b.Since) })
	return failing
}

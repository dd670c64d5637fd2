package isthmus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// The table of floors is written once, as rooms. docs/architecture.md shows it: go test . -update
// writes it there.
func TestFloorsAreShown(t *testing.T) {
	t.Parallel()
	const page, head = "docs/architecture.md", "| floor | room | content |\n| --- | --- | --- |\n"
	before, rest, found := strings.Cut(read(t, page), head)
	_, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table of floors", page)
	}
	golden.Text(t, page, before+head+floors()+"\n"+after)
}

func floors() string {
	down := slices.Clone(rooms)
	slices.SortStableFunc(down, func(a, b room) int {
		if a.floor != b.floor {
			return b.floor - a.floor
		}
		return b.step - a.step
	})
	var table strings.Builder
	for _, r := range down {
		floor := fmt.Sprint(r.floor)
		if r.step > 0 {
			floor += fmt.Sprintf(".%d", r.step)
		}
		fmt.Fprintf(&table, "| %s | `%s` | %s |\n", floor, r.path, r.holds)
	}
	return table.String()
}

package file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// trail is the way from the root of a document to a field. It is built on the
// stack while descending and only written out when there is something to say.
type trail struct {
	up    *trail
	name  string
	index int // negative: name is the step
}

func (t *trail) field(name string) trail { return trail{t, name, -1} }
func (t *trail) item(i int) trail        { return trail{t, "", i} }

func (t *trail) String() string {
	var steps []any
	for ; t != nil; t = t.up {
		if t.index >= 0 {
			steps = append(steps, t.index)
		} else {
			steps = append(steps, t.name)
		}
	}
	slices.Reverse(steps)
	return yamlpos.Path(steps...)
}

// verdict gathers everything that is wrong with one document.
type verdict struct {
	problems []yamlpos.Problem
	// misfit says that the document does not fit its message, which is then
	// incomplete: rules that relate fields would speak of what nobody wrote.
	misfit bool
}

// add notes what is wrong at a field and how to mend it.
func (v *verdict) add(at trail, format string, args ...any) {
	v.problems = append(v.problems, yamlpos.Problem{Field: at.String(), Reason: fmt.Sprintf(format, args...)})
}

// fail is add for what does not fit the message.
func (v *verdict) fail(at trail, format string, args ...any) {
	v.misfit = true
	v.add(at, format, args...)
}

func (v *verdict) ok() bool { return len(v.problems) == 0 }

// most is how many problems of one document are written out.
const most = 10

// order finds the lines of the problems and sorts by them.
func (v *verdict) order(root *yamlpos.Node) {
	for i := range v.problems {
		if p := &v.problems[i]; p.Line == 0 {
			p.Line = root.LineOf(p.Field)
		}
	}
	slices.SortStableFunc(v.problems, func(a, b yamlpos.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
}

// reason joins the problems: the first one stands for itself, its place is
// told beside it; each further one comes with its own.
func (v *verdict) reason() string {
	var b strings.Builder
	b.WriteString(v.problems[0].Reason)
	for i, p := range v.problems[1:] {
		if i == most-1 {
			fmt.Fprintf(&b, "; and %d more", len(v.problems)-most)
			break
		}
		fmt.Fprintf(&b, "; also line %d: %s: %s", p.Line, p.Field, p.Reason)
	}
	return b.String()
}

package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// Problem is a fault of an object: its field, the reason and the fix. Its line is zero if
// the object did not come from a text.
type Problem = yamlpos.Problem

// trail is the path from the root of an object to a field. It is built on the stack while
// descending and only written out for a problem.
type trail struct {
	up    *trail
	name  string
	index int // negative: name is the step
}

// top returns the trail of a field at the top of an object.
func top(name string) trail { return trail{nil, name, -1} }

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

// problems collects all faults of one object.
type problems struct {
	found []Problem
	// misfit means that the object does not fit its message, which is then incomplete: rules
	// that relate fields would report fields that are not in the object.
	misfit bool
	more   int // number of further problems, beyond the bound
	// carried means that a protocol carried the object: an API server's rules for names, and
	// for the number of endpoints, do not apply.
	carried bool
	// pieces are the bad pieces of a ServiceEntry that a registry made. Their problems are not
	// in found. It is nil for an object that a person wrote.
	pieces pieces
}

// add adds the problem of a field, with its fix.
func (p *problems) add(at trail, format string, args ...any) {
	if p.pieces != nil {
		if is, ok := at.piece(); ok {
			p.addPiece(is, at, format, args...)
			return
		}
	}
	p.take(Problem{Field: at.String(), Reason: fmt.Sprintf(format, args...)})
}

// take adds a problem.
func (p *problems) take(problem Problem) {
	if len(p.found) >= yamlpos.MaxProblems {
		p.more++
		return
	}
	p.found = append(p.found, problem)
}

// addPiece adds the problem of a piece: the first field of several counts.
func (p *problems) addPiece(is piece, at trail, format string, args ...any) {
	before, known := p.pieces[is]
	if !known && len(p.pieces) >= yamlpos.MaxProblems {
		p.pieces[is] = Problem{} // the texts beyond the bound are not read
		return
	}
	problem := Problem{Field: at.String(), Reason: fmt.Sprintf(format, args...)}
	if !known || before.Reason != "" && compareProblems(problem, before) < 0 {
		p.pieces[is] = problem
	}
}

// fail is add for a field that does not fit the message.
func (p *problems) fail(at trail, format string, args ...any) {
	p.misfit = true
	p.add(at, format, args...)
}

// sorted finds the lines of the problems and sorts by them.
func (p *problems) sorted(object *yamlpos.Node) []Problem {
	for i := range p.found {
		if found := &p.found[i]; found.Line == 0 {
			found.Line = object.LineOf(found.Field)
		}
	}
	slices.SortStableFunc(p.found, compareProblems)
	return p.found
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
}

// most bounds the written problems of one object.
const most = 10

// reason joins problems. The place of the first one is shown beside it, so it is left out;
// each further problem comes with its own.
func reason(found []Problem) string {
	var b strings.Builder
	b.WriteString(found[0].Reason)
	for i, p := range found[1:] {
		if i == most-1 {
			fmt.Fprintf(&b, "; and %d more", len(found)-most)
			break
		}
		b.WriteString("; also ")
		if p.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", p.Line)
		}
		fmt.Fprintf(&b, "%s: %s", p.Field, p.Reason)
	}
	return b.String()
}

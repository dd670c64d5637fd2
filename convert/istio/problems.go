package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// Problem is something invalid in an object: where it stands, what is wrong and
// how to fix it. Its line is zero if the object did not come from a text.
type Problem = yamlpos.Problem

// trail is the way from the root of an object to a field. It is built on the
// stack while descending and only written out when there is something to say.
type trail struct {
	up    *trail
	name  string
	index int // negative: name is the step
}

// top is the trail of a field at the top of an object.
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

// problems gathers everything that is wrong with one object.
type problems struct {
	found []Problem
	// misfit says that the object does not fit its message, which is then
	// incomplete: rules that relate fields would speak of what nobody wrote.
	misfit bool
	more   int // that were not noted, as there were enough
	// carried says that the object was carried by a protocol: what an API server
	// demands of names, and of the number of endpoints, is not demanded of it.
	carried bool
	// pieces are what is bad of a ServiceEntry that a registry made, and is none of
	// what is found of the whole. It is nil for an object that a person wrote.
	pieces pieces
}

// add notes what is wrong at a field and how to fix it.
func (p *problems) add(at trail, format string, args ...any) {
	if p.pieces != nil {
		if is, ok := at.piece(); ok {
			p.addPiece(is, at, format, args...)
			return
		}
	}
	if len(p.found) >= yamlpos.MaxProblems {
		p.more++
		return
	}
	p.found = append(p.found, Problem{Field: at.String(), Reason: fmt.Sprintf(format, args...)})
}

// addPiece notes the problem of a piece: of several that whose field is first.
func (p *problems) addPiece(is piece, at trail, format string, args ...any) {
	before, known := p.pieces[is]
	if !known && len(p.pieces) >= yamlpos.MaxProblems {
		p.pieces[is] = Problem{} // nobody reads more
		return
	}
	problem := Problem{Field: at.String(), Reason: fmt.Sprintf(format, args...)}
	if !known || before.Reason != "" && compareProblems(problem, before) < 0 {
		p.pieces[is] = problem
	}
}

// fail is add for what does not fit the message.
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

// most is how many problems of one object are written out.
const most = 10

// reason joins problems: the first one stands for itself, for its place is
// shown beside it; each further one comes with its own.
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

package laws_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// carriedKind is of objects that Isthmus does not understand.
const carriedKind = model.Kind("WorkloadGroup")

// united returns the carried objects in the catalog, by a plain rule: the record with the
// shortest path counts, and of these the first source's.
func (t telling) united() []string {
	carried, first := map[string]string{}, map[string]int{}
	place := func(source string) int { // behind those in the order, by name
		if i := slices.Index(t.order, source); i >= 0 {
			return i
		}
		return len(t.order) + int(source[0])
	}
	for r := range t.records() {
		if spec, is := r.Spec.(model.Opaque); is {
			key, at := fmt.Sprint(r.Kind, " ", r.Namespace, "/", r.Name), 1000*r.Path.Len()+place(r.Source)
			if was, some := first[key]; !some || at < was {
				carried[key], first[key] = spec.Content, at
			}
		}
	}
	var lines []string
	for key, content := range carried {
		lines = append(lines, key+" is "+content)
	}
	slices.Sort(lines)
	return lines
}

// lookAtUnited makes sure that the catalog has the carried objects that it should have.
func (p *play) lookAtUnited() {
	var got []string
	now := p.process.Inside().Snapshot()
	for o := range now.Opaques() {
		got = append(got, o.Key.String()+" is "+o.Content)
	}
	slices.Sort(got)
	if want := p.telling().united(); !slices.Equal(got, want) {
		p.Fatalf("the catalog has\n%s\nbut it should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

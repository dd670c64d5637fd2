// Package measure measures the walls inside the product's packages: whether a type
// is spread over files, declarations use each other in circles, packages and structs
// are large, and comments name their nouns. It reads the sources and runs nothing but
// the go command, which lists packages and the types of other modules.
//
// Bounds of the measures are a table of CONTRIBUTING.md. A test at the root holds
// them, and [Lower] lowers them.
package measure

import (
	"cmp"
	"math"
	"slices"
)

// Row is a measure with the value of each thing measured, largest first, and the
// value that none is to be above in the end.
type Row struct {
	Name   string
	End    float64
	Ends   []Value // of things with another end
	Values []Value
	Names  []string // of what is counted for the whole, sorted
}

// Value is the measure of a package or struct, or of the whole product.
type Value struct {
	Of string // empty for the whole
	N  float64
}

// EndOf returns the end for a thing of the row.
func (r Row) EndOf(of string) float64 {
	for _, end := range r.Ends {
		if end.Of == of {
			return end.N
		}
	}
	return r.End
}

// Above returns the values above their ends, or the one of the whole product.
func (r Row) Above() (above []Value) {
	for _, v := range r.Values {
		if v.Of == "" || v.N > r.EndOf(v.Of) {
			above = append(above, v)
		}
	}
	return above
}

// Of measures packages that were loaded together.
func Of(packages []*Package) []Row {
	var all []*declarations
	for _, p := range packages {
		all = append(all, declarationsOf(p))
	}
	behind, abroad := indirectionsOf(all), usedAbroad(all)

	var circles, files, lines, structs []Value
	var spread, members []string
	var comments prose
	for _, d := range all {
		for _, file := range d.p.Files {
			comments.add(file)
		}
		for name, one := range d.types {
			if len(one.files) > 3 {
				spread = append(spread, d.p.Path+"."+name)
			}
		}
		circle, sum := d.largestCircle()
		for _, one := range circle {
			members = append(members, d.p.Path+"."+one.name)
		}
		circles = append(circles, value(d.p.Path, sum))
		files = append(files, value(d.p.Path, len(d.p.Files)))
		lines = append(lines, value(d.p.Path, d.linesOfFiles()))
		for name, n := range d.fieldsOf(abroad) {
			structs = append(structs, value(d.p.Path+"."+name, n))
		}
	}
	circle := each("lines of the largest circle of declarations", 500, circles, Value{"push", 800})
	circle.Names = sorted(members)
	return []Row{
		count("types whose methods lie in more than three files", 8, spread),
		circle,
		each("files of a package", 25, files),
		each("lines of a package", 4500, lines),
		each("fields of a struct", 24, structs),
		count("interfaces with one implementation", 19, behind.single),
		count("fields that are functions", 132, behind.fields),
		count("tables of functions", 24, behind.tables),
		whole(`"what" in 1,000 words of comments`, 3, share(comments.what, comments.words, 1000)),
		whole("comments that open with a pronoun, in 100", 2, share(comments.opened, comments.blocks, 100)),
	}
}

func value(of string, n int) Value { return Value{of, float64(n)} }

func whole(name string, end, n float64) Row {
	return Row{Name: name, End: end, Values: []Value{{"", n}}}
}

// count is a row of the whole: how many there are of a kind.
func count(name string, end float64, found []string) Row {
	row := whole(name, end, float64(len(found)))
	row.Names = sorted(found)
	return row
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// share returns a part of the whole, to one decimal.
func share(part, of int, per float64) float64 {
	if of == 0 {
		return 0
	}
	return math.Round(float64(part)/float64(of)*per*10) / 10
}

// each is a row of things, largest first, with those whose end is another.
func each(name string, end float64, values []Value, others ...Value) Row {
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(-cmp.Compare(a.N, b.N), cmp.Compare(a.Of, b.Of))
	})
	return Row{Name: name, End: end, Ends: others, Values: values}
}

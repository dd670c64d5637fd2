package measure

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The table of bounds has a line for each row: its name, what it was at first, its
// bound, and its end. A bound is a number, or a list of things above the end, each
// with its own: "push 38, store 31".

// Broken compares the rows with a page's bounds, and says what is wrong. A value may
// not be above its bound, and a bound not above its value: whoever earned a lower
// one lowers it. What has reached its end is bound by the end alone.
func Broken(rows []Row, page string) (broken []string) {
	for _, row := range rows {
		cells := tableLine(page, row.Name)
		if cells == nil {
			broken = append(broken, fmt.Sprintf("%s: there is no such line in the table", row.Name))
			continue
		}
		if end := row.EndText(); cells[3] != end {
			broken = append(broken, fmt.Sprintf("%s: the end is %s, not %s", row.Name, end, cells[3]))
		}
		bounds, err := parse(cells[2])
		if err != nil {
			broken = append(broken, fmt.Sprintf("%s: %v", row.Name, err))
			continue
		}
		broken = append(broken, row.broken(bounds)...)
	}
	return broken
}

func (r Row) broken(bounds []Value) (broken []string) {
	wanted := r.bounds()
	of := func(values []Value, name string) float64 {
		for _, v := range values {
			if v.Of == name {
				return v.N
			}
		}
		return r.EndOf(name)
	}
	for _, v := range wanted {
		if bound := of(bounds, v.Of); v.N > bound {
			broken = append(broken, fmt.Sprintf("%s has risen to %s, and may only fall from %s", r.nameOf(v.Of), number(v.N), number(bound)))
		}
	}
	for _, b := range bounds {
		if now := of(wanted, b.Of); now < b.N {
			broken = append(broken, fmt.Sprintf("%s has fallen from %s to %s: lower the bound, by go run ./test/gauge -lower",
				r.nameOf(b.Of), number(b.N), number(now)))
		}
	}
	return broken
}

// bounds returns what the bounds of a row are to be.
func (r Row) bounds() []Value {
	bounds := r.Above()
	for i, v := range bounds {
		bounds[i].N = max(v.N, r.EndOf(v.Of))
	}
	return bounds
}

func (r Row) nameOf(thing string) string {
	if thing == "" {
		return r.Name
	}
	return r.Name + ": " + thing
}

// EndText returns the end as the table has it.
func (r Row) EndText() string {
	return List(append([]Value{{"", r.End}}, r.Ends...))
}

// Lower returns the page with the bounds that rows have earned. It raises none.
func Lower(rows []Row, page string) string {
	for _, row := range rows {
		cells := tableLine(page, row.Name)
		if cells == nil {
			continue
		}
		bounds, err := parse(cells[2])
		if err != nil {
			continue
		}
		wanted := row.bounds()
		bounds = slices.DeleteFunc(bounds, func(b Value) bool {
			return !slices.ContainsFunc(wanted, func(v Value) bool { return v.Of == b.Of })
		})
		for i, b := range bounds {
			for _, v := range wanted {
				if v.Of == b.Of {
					bounds[i].N = min(b.N, v.N)
				}
			}
		}
		page = strings.Replace(page, line(cells), line([]string{cells[0], cells[1], List(bounds), cells[3]}), 1)
	}
	return page
}

// tableLine returns the four cells of the line with a name, or nil.
func tableLine(page, name string) []string {
	for l := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == 4 && cells[0] == name {
			return cells
		}
	}
	return nil
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

var bound = regexp.MustCompile(`^(?:(\S+) )?([0-9]+(?:\.[0-9])?)$`)

func parse(cell string) (bounds []Value, err error) {
	for part := range strings.SplitSeq(cell, ", ") {
		found := bound.FindStringSubmatch(part)
		if found == nil && cell != none {
			return nil, fmt.Errorf("%q is no bound, such as 12 or push 38", part)
		}
		if found != nil {
			n, _ := strconv.ParseFloat(found[2], 64) // it has digits
			bounds = append(bounds, Value{found[1], n})
		}
	}
	return bounds, nil
}

const none = "none above"

// List returns values as the table has them.
func List(values []Value) string {
	if len(values) == 0 {
		return none
	}
	var list []string
	for _, v := range values {
		list = append(list, v.String())
	}
	return strings.Join(list, ", ")
}

func (v Value) String() string {
	if v.Of == "" {
		return number(v.N)
	}
	return v.Of + " " + number(v.N)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

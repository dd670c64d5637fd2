package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const table = "| a | 9 | 7 | 3 |\n| b | p 9 | q 8, p 6 | 5, r 7 |\n"

func rowA(n float64) Row { return whole("a", 3, n) }

func rowB(values ...Value) Row { return each("b", 5, values, Value{"r", 7}) }

func TestBounds(t *testing.T) {
	t.Parallel()
	atBound := rowB(Value{"q", 8}, Value{"p", 6}, Value{"r", 7}, Value{"s", 5})
	for _, test := range []struct {
		name   string
		rows   []Row
		broken []string
		lower  string // empty if the page stays as it is
	}{
		{"at the bounds", []Row{rowA(7), atBound}, nil, ""},
		{"a value rises", []Row{rowA(7.1), atBound}, []string{"a has risen to 7.1, and may only fall from 7"}, ""},
		{
			"a value falls",
			[]Row{rowA(6), atBound},
			[]string{"a has fallen from 7 to 6: lower the bound, by go run ./test/gauge -lower"},
			"| a | 9 | 6 | 3 |\n| b | p 9 | q 8, p 6 | 5, r 7 |\n",
		},
		{
			"a value falls below its end",
			[]Row{rowA(1), atBound},
			[]string{"a has fallen from 7 to 3: lower the bound, by go run ./test/gauge -lower"},
			"| a | 9 | 3 | 3 |\n| b | p 9 | q 8, p 6 | 5, r 7 |\n",
		},
		{
			"one rises, one falls",
			[]Row{rowA(7), rowB(Value{"q", 9}, Value{"p", 5.5})},
			[]string{"b: q has risen to 9, and may only fall from 8", "b: p has fallen from 6 to 5.5: lower the bound, by go run ./test/gauge -lower"},
			"| a | 9 | 7 | 3 |\n| b | p 9 | q 8, p 5.5 | 5, r 7 |\n",
		},
		{
			"all reach their ends",
			[]Row{rowA(7), rowB(Value{"q", 5}, Value{"p", 1})},
			[]string{
				"b: q has fallen from 8 to 5: lower the bound, by go run ./test/gauge -lower",
				"b: p has fallen from 6 to 5: lower the bound, by go run ./test/gauge -lower",
			},
			"| a | 9 | 7 | 3 |\n| b | p 9 | none above | 5, r 7 |\n",
		},
		{
			"one without a bound is above its end",
			[]Row{rowA(7), rowB(Value{"q", 8}, Value{"r", 8}, Value{"p", 6}, Value{"s", 6})},
			[]string{"b: r has risen to 8, and may only fall from 7", "b: s has risen to 6, and may only fall from 5"},
			"",
		},
		{"the end is another", []Row{whole("a", 2, 7), atBound}, []string{"a: the end is 2, not 3"}, ""},
		{"a row has no line", []Row{whole("c", 2, 7)}, []string{"c: there is no such line in the table"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.broken, Broken(test.rows, table)); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
			want := test.lower
			if want == "" {
				want = table
			}
			if diff := cmp.Diff(want, Lower(test.rows, table)); diff != "" {
				t.Errorf("lowered (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABoundIsANumber(t *testing.T) {
	t.Parallel()
	want := []string{`a: "few" is no bound, such as 12 or push 38`}
	if diff := cmp.Diff(want, Broken([]Row{rowA(7)}, "| a | 9 | few | 3 |\n")); diff != "" {
		t.Errorf("broken (-want +got):\n%s", diff)
	}
	page := "| b | p 9 | none above | 5, r 7 |\n"
	if broken := Broken([]Row{rowB(Value{"p", 5})}, page); broken != nil {
		t.Errorf("nothing is above the end, and is broken: %q", broken)
	}
}

package scale_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// figures are what was measured, by unit.
type figures map[string]float64

func (f figures) report(b *testing.B) {
	b.Helper()
	for unit, value := range f {
		b.ReportMetric(value, unit)
	}
	quiet(b)
}

// BenchmarkForm writes the same service as the product does, and as WorkloadEntry
// objects that one ServiceEntry selects: in turns, each into an API server of its
// own, with an istiod that reads it. Besides every round it reports the median of
// each form, and that of what the second takes for what the first takes in the
// same round.
func BenchmarkForm(b *testing.B) {
	for text := range strings.SplitSeq(*endpoints, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal("-endpoints: ", err)
		}
		b.Run(fmt.Sprintf("endpoints=%d", size), func(b *testing.B) { compareForms(b, size) })
	}
}

func compareForms(b *testing.B, size int) {
	b.Helper()
	rows := map[string][]figures{}
	for round := range *rounds {
		for _, f := range forms {
			b.Run(fmt.Sprintf("round=%d/%s", round, f.name), func(b *testing.B) {
				t := newTrial(b, newFleet(f.form, size))
				t.create(b)
				t.list(b)
				t.load(b)
				t.change(b)
				t.figures.report(b)
				rows[f.name] = append(rows[f.name], t.figures)
			})
		}
	}
	for _, f := range forms {
		b.Run("median/"+f.name, medianOf(rows[f.name]).report)
	}
	var ratios []figures
	first, second := rows[forms[0].name], rows[forms[1].name]
	for round := range min(len(first), len(second)) {
		ratio := figures{}
		for unit, value := range first[round] {
			ratio[unit] = second[round][unit] / value
		}
		ratios = append(ratios, ratio)
	}
	b.Run("ratio", medianOf(ratios).report)
}

// medianOf is the median of each figure.
func medianOf(rows []figures) figures {
	medians := figures{}
	if len(rows) == 0 {
		return medians
	}
	for unit := range rows[0] {
		var values []float64
		for _, row := range rows {
			values = append(values, row[unit])
		}
		slices.Sort(values)
		medians[unit] = values[len(values)/2]
	}
	return medians
}

package smi

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

const (
	// mostWeight is the largest weight, as in the configuration.
	mostWeight = 1_000_000
	// unit is the number of thousandths in 1.
	unit = 1000
)

// weight returns a weight in thousandths; zero after a problem, and if the field is missing.
func (r *reader) weight(n *yamlpos.Node, at ...any) uint32 {
	mayBeQuantity, example := r.of.Served || r.of.Version == quantities, "90"
	if mayBeQuantity {
		example = "90 or 900m"
	}
	switch {
	case n.Kind() == yamlpos.Null:
		return 0
	case n.Kind() == yamlpos.String && !mayBeQuantity:
		r.add(at, "must be a whole number, is a string: write one such as 90; only %s has quantities such as 900m", quantities)
		return 0
	case n.Kind() != yamlpos.Number && n.Kind() != yamlpos.String:
		r.add(at, "must be a number, is %s: write one such as %s", n.Kind(), example)
		return 0
	}
	switch value, fit := thousandths(n.Text()); {
	case fit == noNumber:
		r.add(at, "%q is not a weight: write one such as %s", cut(n.Text()), example)
	case fit == outOfRange:
		r.add(at, "%s is not between 0 and %d", cut(n.Text()), mostWeight)
	case !mayBeQuantity && value%unit != 0, !mayBeQuantity && fit == tooFine:
		r.add(at, "%s is not a whole number: multiply all weights, such as 1 and 0.5 by 2", cut(n.Text()))
	case fit == tooFine:
		r.add(at, "%s is finer than a thousandth: multiply all weights", cut(n.Text()))
	default:
		return value
	}
	return 0
}

// fit is how a text fits a weight.
type fit int

const (
	fits fit = iota
	noNumber
	outOfRange
	tooFine
)

// number matches a number or a quantity: sign, digits, further digits, and exponent or suffix.
var number = regexp.MustCompile(`^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3})|([numkM]?))$`)

// exponents are the suffixes of quantities, as powers of ten.
var exponents = map[string]int{"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6}

// thousandths reads a number or a quantity, in thousandths.
func thousandths(text string) (value uint32, is fit) {
	parts := number.FindStringSubmatch(text)
	if len(parts) == 0 || parts[2]+parts[3] == "" {
		return 0, noNumber
	}
	exponent := exponents[parts[5]]
	if parts[4] != "" {
		exponent, _ = strconv.Atoi(parts[4]) // matched
	}
	// The value is the digits, followed by so many zeros.
	digits, zeros := strings.TrimLeft(parts[2]+parts[3], "0"), 3+exponent-len(parts[3])
	for zeros < 0 && strings.HasSuffix(digits, "0") {
		digits, zeros = digits[:len(digits)-1], zeros+1
	}
	switch {
	case digits == "":
		return 0, fits
	case parts[1] == "-" || len(digits)+zeros > len(strconv.Itoa(mostWeight*unit)):
		return 0, outOfRange
	case zeros < 0:
		return 0, tooFine
	}
	n, err := strconv.ParseUint(digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || n > mostWeight*unit {
		return 0, outOfRange
	}
	return uint32(n), fits
}

// inUnits returns weights in thousandths as whole numbers if all are.
func inUnits(weights []uint32) []uint32 {
	for _, weight := range weights {
		if weight%unit != 0 {
			return weights
		}
	}
	whole := make([]uint32, len(weights))
	for i, weight := range weights {
		whole[i] = weight / unit
	}
	return whole
}

// cut shortens a text of a file for a problem.
func cut(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

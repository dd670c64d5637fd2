package istio

import "strings"

// hint suggests a fix for a name that is not a known one.
func hint(name string, known []string) string {
	best, least := "", 3
	for _, candidate := range known {
		a, b := fold(name), fold(candidate)
		d := distance(a, b)
		if d > 1 && (b == "" || !strings.HasPrefix(a, b[:1])) {
			continue // another word with a similar spelling
		}
		if d < least {
			best, least = candidate, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "remove it, or use one of " + strings.Join(known, ", ")
}

func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// distance returns the number of letters to insert, delete or replace to change a into b.
// The distance of a far longer name is its length.
func distance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

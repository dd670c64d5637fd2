package istio

import "strings"

// hint helps somebody who wrote a name that is none of the known ones.
func hint(name string, known []string) string {
	best, least := "", 3
	for _, candidate := range known {
		a, b := fold(name), fold(candidate)
		d := distance(a, b)
		if d > 1 && (b == "" || !strings.HasPrefix(a, b[:1])) {
			continue // another word that happens to look alike
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

// distance is the number of letters to insert, delete or replace to turn a
// into b; names longer than any field's are simply far away.
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

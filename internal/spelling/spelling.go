// Package spelling finds the known name that a misspelled name most likely means, so that
// an error can ask "did you mean".
//
// Names are foreign text: the cost is bounded by the number of known names, whatever their
// lengths. Functions here share nothing and may be called from any goroutine.
package spelling

import "strings"

const (
	longest = 64 // longer names have no suggestion
	most    = 2  // edits between two spellings of one name
)

// Nearest returns the known name that differs least from a name: by case and underscores,
// by at most two edited letters, or because one name begins with the other. An edit
// inserts, deletes or replaces a letter. The result is empty if there is no such name; of
// equally near names it is the first one.
func Nearest(name string, known []string) string {
	best, least := "", most+1
	for _, candidate := range known {
		if d := difference(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// difference returns the number of edits between two names, and more than most for two
// different names.
func difference(name, candidate string) int {
	if len(name) > longest || len(candidate) > longest {
		return most + 1
	}
	a, b := fold(name), fold(candidate)
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if short == 0 {
		return most + 1
	}
	d := most + 1
	if long-short <= most {
		d = distance(a, b)
	}
	switch {
	case d > 1 && short >= 3 && a[:short] == b[:short]:
		return most // such as token for tokenFile
	case d > 1 && (short <= 3 || a[0] != b[0]):
		return most + 1 // another word
	}
	return d
}

func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// distance returns the number of letters to insert, delete or replace to change a into b.
func distance(a, b string) int {
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

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

// The ranks of a candidate, beside 0 and 1 for that many edits.
const (
	begins = 2 // one name begins with the other
	edited = 3 // by two edits
	other  = 4 // another word
)

// Nearest returns the known name that differs least from a name: by case and underscores,
// by at most two edited letters, or because one name begins with the other. An edit
// inserts, deletes or replaces a letter, or swaps two. The result is empty if there is no such name; of
// equally near names it is the first one.
func Nearest(name string, known []string) string {
	best, least := "", other
	for _, candidate := range known {
		if r := rank(name, candidate); r < least {
			best, least = candidate, r
		}
	}
	return best
}

// rank returns how near two names are.
func rank(name, candidate string) int {
	if len(name) > longest || len(candidate) > longest {
		return other
	}
	a, b := fold(name), fold(candidate)
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if short == 0 {
		return other
	}
	edits := most + 1
	if long-short <= most {
		edits = distance(a, b)
	}
	switch {
	case edits <= 1:
		return edits
	case short >= 3 && a[:short] == b[:short]:
		return begins // such as token for tokenFile
	case edits == most && short > 3 && a[0] == b[0]:
		return edited
	}
	return other
}

func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// distance returns the number of letters to insert, delete, replace, or swap with the next
// one, to change a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+1)
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

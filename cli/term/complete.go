package term

import (
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// mostCompletions bounds the completions that a shell is given.
const mostCompletions = 200

// Completions returns the names that begin with a text, each once and up to a bound. A name
// that a shell cannot show is left out.
func Completions(names []string, begun string) []string {
	var list []string
	seen := map[string]bool{}
	for _, name := range names {
		if len(list) == mostCompletions {
			break
		}
		if strings.HasPrefix(name, begun) && !seen[name] && plain.Text(name) == name {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}

package hold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// Text describes the held records, the next steps, and the options of an operator.
func Text(h *Holds, source string, cfg Config) string {
	objects, due := map[model.Ref]bool{}, Clock{}
	for _, one := range h.by {
		for ref := range one.objects {
			objects[ref] = true
		}
		if one.Listings > 0 && (due.Listings == 0 || one.First.Before(due.First)) {
			due = one.Clock
		}
	}
	what := fmt.Sprintf("%d of %d endpoints", h.Stock.Endpoints, judged(h))
	if h.Stock.Endpoints == 0 {
		what = fmt.Sprintf("%d records", h.Stock.Stored)
	}
	text := fmt.Sprintf("%s disappeared within %s, of %s; each is kept until %d listings in a row that span %s lack it", what, cfg.For, some(objects), confirmations, cfg.For)
	if due.Listings > 0 {
		text += fmt.Sprintf(" (%d so far, the first is due at %s)", due.Listings, due.First.Add(cfg.For).UTC().Format(time.RFC3339))
	}
	return text + "; if they are really gone, run: isthmus sources release " + source
}

// judged returns the number of judged endpoints: all endpoints of the source if a record is held for
// it as a whole, else all endpoints of the services with a loss.
func judged(h *Holds) (n int) {
	had := map[model.Ref]int{}
	for key, one := range h.by {
		had[key.cause] = max(had[key.cause], one.Had, one.Stock.Endpoints)
	}
	if whole, is := had[model.Ref{}]; is {
		return max(whole, h.Stock.Endpoints)
	}
	for _, most := range had {
		n += most
	}
	return n
}

// some names a few objects, services first, and counts the others.
func some(objects map[model.Ref]bool) string {
	const few = 3
	refs := slices.SortedFunc(maps.Keys(objects), func(a, b model.Ref) int {
		return cmp.Or(rank(a.Kind)-rank(b.Kind), a.Compare(b))
	})
	var names []string
	for _, ref := range refs[:min(few, len(refs))] {
		names = append(names, reading.Describe(ref))
	}
	if more := len(refs) - few; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func rank(kind model.Kind) int {
	if kind == model.KindService {
		return 0
	}
	return 1
}

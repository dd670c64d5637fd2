package measure

import (
	"go/ast"
	"regexp"
	"strings"
)

// prose counts the comments of the product.
type prose struct {
	words, what    int
	blocks, opened int // comments, and those that open with a pronoun
}

var (
	what = regexp.MustCompile(`(?i)\bwhat\b`)
	// A comment opens with a pronoun, or says first that a name is one.
	opensWithPronoun = regexp.MustCompile(`(?i)^(\S+ (is|are|was|were) )?` +
		`((what|whatever|who|whoever|whom|whose|which|that|those|it|they|somebody|someone|nobody|everybody|everyone|anybody|anything|something|nothing)` +
		`|(one|ones|all|some|none|any|both|each|either|this|these) (that|who|whose|which|of|is|are|was|were|has|have|may|can|must|goes|comes|says|holds|makes))\b`)
)

func (p *prose) add(file *ast.File) {
	for _, group := range file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if text == "" {
			continue // a directive
		}
		p.words += strings.Count(text, " ") + 1
		p.what += len(what.FindAllString(text, -1))
		p.blocks++
		if opensWithPronoun.MatchString(text) {
			p.opened++
		}
	}
}

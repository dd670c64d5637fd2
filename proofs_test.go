package isthmus_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// proofsPage names the tests behind the rules of the pages for users.
const proofsPage = "docs/proofs.md"

var (
	proofHead = regexp.MustCompile(`(?m)^### \[([^\]]+)\]\(([^)#]+)#[^)]*\)$`)
	anyHead   = regexp.MustCompile(`(?m)^(#+) (.+)$`)
	markup    = regexp.MustCompile(`\]\([^)]*\)|[\[\]]|\*\*`)
)

// proofs are the rules in a section of a page, by their first words.
type proofs struct {
	page, title string
	rules       []string
}

// Each proof is of a rule that is on its page.
func TestProofsAreOfRulesOnTheirPages(t *testing.T) {
	t.Parallel()
	all := readProofs(read(t, proofsPage))
	if len(all) < 20 {
		t.Fatalf("found %d sections of proofs; fix this test", len(all))
	}
	for _, section := range all {
		text := plainText(sectionOf(withoutCode(read(t, section.page)), section.title))
		for _, rule := range section.rules {
			if !strings.Contains(text, rule) {
				t.Errorf("%s, %s: no rule begins %q; correct %s", section.page, section.title, rule, proofsPage)
			}
		}
	}
}

// Each line of the page on security has a proof.
func TestSecurityHasItsProofs(t *testing.T) {
	t.Parallel()
	const page = "docs/security.md"
	lines := 0
	for _, section := range readProofs(read(t, proofsPage)) {
		if section.page != page {
			continue
		}
		_, list, _ := strings.Cut(sectionOf(read(t, page), section.title), "\n- ")
		for line := range strings.SplitSeq(list, "\n- ") {
			lines++
			if !hasProof(plainText(line), section.rules) {
				t.Errorf("%s, %s: no proof of %q; add it to %s", page, section.title, line, proofsPage)
			}
		}
	}
	if all := strings.Count(read(t, page), "\n- "); lines != all || all < 20 {
		t.Errorf("%d of %d lines of %s are in sections with proofs", lines, all, page)
	}
}

func hasProof(line string, rules []string) bool {
	for _, rule := range rules {
		if strings.HasPrefix(line, rule) {
			return true
		}
	}
	return false
}

// readProofs reads the sections of the page of proofs.
func readProofs(page string) (all []proofs) {
	heads := proofHead.FindAllStringSubmatchIndex(page, -1)
	for i, head := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		section := proofs{page: path.Join("docs", page[head[4]:head[5]]), title: page[head[2]:head[3]]}
		for _, cells := range tableRows(page[head[1]:end]) {
			section.rules = append(section.rules, strings.TrimSuffix(plainText(cells[0]), " …"))
		}
		all = append(all, section)
	}
	return all
}

// sectionOf returns a section of a page with its subsections, or nothing.
func sectionOf(page, title string) string {
	begin, level := -1, ""
	for _, head := range anyHead.FindAllStringSubmatchIndex(page, -1) {
		marks, text := page[head[2]:head[3]], page[head[4]:head[5]]
		switch {
		case begin >= 0 && len(marks) <= len(level):
			return page[begin:head[0]]
		case begin < 0 && text == title:
			begin, level = head[1], marks
		}
	}
	if begin < 0 {
		return ""
	}
	return page[begin:]
}

// plainText is a text without markup. The cells of a row are joined by colons.
func plainText(text string) string {
	text = strings.ReplaceAll(markup.ReplaceAllString(text, ""), " | ", ": ")
	return strings.Join(strings.Fields(text), " ")
}

func TestProofsAreGuarded(t *testing.T) {
	t.Parallel()
	all := readProofs("# P\n\n### [Rules](reference/a.md#rules)\n\n| rule | shown by |\n| --- | --- |\n| it is [so](x) and … | `a_test.go` `TestA` |\n")
	if len(all) != 1 || all[0].page != "docs/reference/a.md" || all[0].title != "Rules" || all[0].rules[0] != "it is so and" {
		t.Fatalf("the proofs are %+v", all)
	}
	page := "# A\n\n## Rules\n\n- **it** is [so](y)\n  and stays\n\n### More\n\n| a | b |\n\n## Other\n\nelse\n"
	text := plainText(sectionOf(page, "Rules"))
	if text != "- it is so and stays ### More | a: b |" {
		t.Errorf("the section is %q", text)
	}
	if !hasProof("it is so", []string{"no", "it is"}) || hasProof("so it is", []string{"it is"}) {
		t.Error("a proof is found by other words than the first")
	}
}

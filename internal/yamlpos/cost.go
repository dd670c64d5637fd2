package yamlpos

import "fmt"

// The measured memory of a value. The YAML parser's own tree takes most of it, and the node
// tree, which exists beside it for a moment, the rest.
const (
	yamlCost  = 320 // bytes of memory, for a value or a key in YAML
	jsonCost  = 160 // for a value in JSON
	aliasCost = 160 // for a value that an alias adds
)

// A document may take perByte bytes of memory for each of its own bytes, and spare bytes in
// addition. A usual manifest takes 40 to 50 for each byte in YAML, and 20 in JSON.
const (
	perByte = 64
	spare   = 8 << 20
)

// Allowance returns the bytes of memory that a document of a size may take to read.
func Allowance(size int) int64 { return perByte*int64(size) + spare }

// checkCost returns why a document would take too much memory to read; nil if it does not.
func checkCost(size int, cost, memory int64, line int) *Problem {
	allowed := min(Allowance(size), memory)
	if cost <= allowed {
		return nil
	}
	remedy := "split it into documents of fewer values"
	if allowed == memory {
		remedy = "split it into several documents, such as one for each object of a list, or write it as JSON, which takes less"
	}
	return &Problem{Line: line, Reason: fmt.Sprintf(
		"the document has %d KiB and would take about %d MiB of memory, where %d MiB are allowed: %s",
		(size+1023)>>10, cost>>20, allowed>>20, remedy)}
}

// valueCounts is the number of values in a text that is known to be JSON.
type valueCounts struct {
	values  int64
	entries []int32 // of each list and map, in the order in which they begin
}

func (c valueCounts) cost() int64 { return c.values * jsonCost }

func countJSON(text []byte) valueCounts {
	c := valueCounts{values: 1}
	var open []int // places in entries
	empty := false // the list or map opened last has no entry so far
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			i = endOfString(text, i)
		case '[', '{':
			open = append(open, len(c.entries))
			c.entries = append(c.entries, 1)
			c.values++
			empty = true
			continue
		case ',':
			c.entries[open[len(open)-1]]++
			c.values++
		case ']', '}':
			if empty {
				c.entries[open[len(open)-1]] = 0
			}
			open = open[:len(open)-1]
		}
		empty = false
	}
	return c
}

// endOfString returns the end of the string that begins at i.
func endOfString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// costOfYAML estimates the number of values and keys in a text, without parsing it. In
// quotes and multi-line texts it counts too many, so the allowance is generous. It never
// counts less than three quarters of the real number. Each item of a list has its dash, its
// bracket or its comma. Each entry of a map has its colon, its question mark, its brace or
// its comma. An entry without a colon is two values. The parser keeps comments as texts.
func costOfYAML(text []byte) int64 {
	var items, colons, flow int64
	for i, c := range text {
		switch c {
		case ',', '[', '{':
			flow++
		case ':':
			if ends(text, i+1) || i > 0 && closes(text[i-1]) {
				colons++
			}
		case '?', '-':
			if ends(text, i+1) {
				items++
			}
			if c == '?' {
				items++
			}
		case '#':
			items++
		}
	}
	return (1 + items + 2*colons + flow + max(flow-colons, 0)) * yamlCost
}

// ends reports whether the character before position i may be an indicator.
func ends(text []byte, i int) bool {
	if i >= len(text) {
		return true
	}
	switch text[i] {
	case ' ', '\t', '\r', '\n', ',', '[', ']', '{', '}':
		return true
	default:
		return text[i] >= 0x80 // some line ends are not ASCII
	}
}

// closes reports whether a key before a colon may end with c. After such a key the colon
// needs no space in a map in braces.
func closes(c byte) bool { return c == '"' || c == '\'' || c == ']' || c == '}' }

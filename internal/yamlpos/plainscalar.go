package yamlpos

import "bytes"

// scalar takes a value that is all there is on the rest of the line.
func (r *plainReader) scalar(s []byte) Node {
	n := Node{line: r.at, kind: String}
	switch {
	case len(s) == 0:
		r.fail()
	case s[0] == '"' || s[0] == '\'':
		n.text = r.quoted(s)
	case string(s) == "{}":
		n.kind = Map
	case string(s) == "[]":
		n.kind = List
	case string(s) == "null":
		n.kind = Null
	case string(s) == "true", string(s) == "false":
		n.kind, n.text = Bool, r.text(s)
	case isInteger(s):
		n.kind, n.text = Number, string(s)
	case isString(s):
		n.text = r.text(s)
	default:
		r.fail()
	}
	return n
}

// quoted takes a text in quotes in which nothing is escaped.
func (r *plainReader) quoted(s []byte) string {
	end := len(s) - 1
	if end == 0 || s[end] != s[0] || bytes.IndexByte(s[1:end], s[0]) >= 0 || bytes.IndexByte(s, '\\') >= 0 {
		r.fail()
		return ""
	}
	return r.text(s[1:end])
}

// text makes a string. What looks like a name is made once.
func (r *plainReader) text(s []byte) string {
	if len(s) == 0 || !isLetter(s[0]) {
		return string(s)
	}
	known, ok := r.known[string(s)]
	if !ok {
		known = string(s)
		r.known[known] = known
	}
	return known
}

// isInteger reports whether YAML and JSON alike take s for a whole number.
func isInteger(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) < 18 && (s[0] != '0' || len(s) == 1)
}

// isString reports whether YAML surely takes s, which is not quoted, for a
// string that ends with the line: it begins with a letter and is no word that
// means something else, or it begins with a digit and is an address.
func isString(s []byte) bool {
	if s[len(s)-1] == ':' || s[len(s)-1] == ' ' || bytes.Contains(s, []byte(": ")) || bytes.Contains(s, []byte(" #")) {
		return false
	}
	if isDigit(s[0]) {
		return bytes.IndexByte(s, ':') > 0 || bytes.Count(s, []byte(".")) > 1
	}
	return isLetter(s[0]) && !plainWord(s)
}

// plainWord reports whether a word means something else than itself in some
// version of YAML, in some case of its letters.
func plainWord(s []byte) bool {
	switch len(s) {
	case 1, 2, 3, 4, 5:
	default:
		return false
	}
	switch string(bytes.ToLower(s)) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	default:
		return false
	}
}

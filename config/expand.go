package config

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} and ${NAME:-default} in a value by variables of the
// environment; $${ stands for ${ itself. It works on values, after the file was
// read, so that no variable can change the file's structure.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			b.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		b.WriteString(text[:at])
		inside, rest, closed := strings.Cut(text[at+2:], "}")
		if !closed {
			return "", fmt.Errorf("%q: ${ without }; write $${ for a literal ${", text[at:])
		}
		value, err := variable(inside, lookup)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = rest
	}
}

func variable(inside string, lookup func(string) (string, bool)) (string, error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !isName(name) {
		return "", fmt.Errorf("${%s}: %q is not the name of a variable; names are letters, digits and _", inside, name)
	}
	value, set := lookup(name)
	switch {
	case set && value != "":
		return value, nil
	case hasFallback:
		return fallback, nil
	case set:
		return "", nil
	default:
		return "", fmt.Errorf("the variable %s is not set; set it, or give a default: ${%s:-value}", name, name)
	}
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

package file

import (
	"regexp"
	"strconv"
	"strings"
)

var protojsonError = regexp.MustCompile(`^proto:[\s\x{a0}]*(?:syntax error )?\(line (\d+):\d+\): (.*)$`)

// protojsonProblem takes an error of protojson apart: the line, and what is
// wrong. The package varies its text by intent, so nothing else is relied on.
func protojsonProblem(text string) (line int, reason string) {
	found := protojsonError.FindStringSubmatch(text)
	if found == nil {
		return 1, strings.TrimLeft(strings.TrimPrefix(text, "proto:"), " \u00a0") + ": correct it"
	}
	line, _ = strconv.Atoi(found[1])
	return line, found[2] + ": correct it"
}

package envoy

import (
	"strings"
)

func foldOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

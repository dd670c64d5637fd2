package demo

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"text/tabwriter"
)

// barWidth is how wide a share of all calls is drawn.
const barWidth = 10

// trailing is the blanks that the last column leaves where it is empty.
var trailing = regexp.MustCompile(`(?m) +$`)

// table draws the view.
func (v view) table() string {
	var b strings.Builder
	b.WriteString(v.columns())
	fmt.Fprintf(&b, "\nregistry   %s\n", v.registry())
	fmt.Fprintf(&b, "calls      %d answered, %d failed", v.answers, v.failures)
	if v.failures > 0 {
		b.WriteString(", the last one: " + v.failure)
	}
	return b.String()
}

// columns are the part of the table that has some.
func (v view) columns() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tBACKEND\tANSWERED\tLAST SECOND\tLAST CHANGE")
	for _, s := range v.services {
		name, change := s.name, s.change.backend+" "+s.change.text()
		if s.change.backend == "" {
			change = ""
		}
		for _, backend := range s.backends {
			fmt.Fprintf(w, "%s\t%s\t%8d\t%s\t%s\n", name, backend.name, backend.answers, backend.lately(), change)
			name, change = "", "" // once for each service
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	return trailing.ReplaceAllString(b.String(), "")
}

// lately is a backend's share of the calls of the last second, or its state.
func (b backendView) lately() string {
	if b.state != "" {
		return b.state
	}
	full := int(math.Round(b.share * barWidth))
	return fmt.Sprintf("%s%s %3.0f %%", strings.Repeat("■", full), strings.Repeat("·", barWidth-full), b.share*100)
}

// text says what happened and how long it took.
func (c change) text() string {
	verb := "left"
	if c.joined {
		verb = "joined"
	}
	return fmt.Sprintf("%s %s after the registry changed", verb, ms(c.after))
}

// registry is the state of the source, in a line.
func (v view) registry() string {
	if v.trouble != nil {
		return v.trouble.Error()
	}
	s := v.source
	text := fmt.Sprintf("%s, %d services, %d endpoints", s.State, s.Services, s.Endpoints)
	if s.Reason != "" {
		text += ", " + s.Reason
	}
	if len(s.Refused) == 0 {
		return text + ", nothing refused"
	}
	r := s.Refused[0]
	text += fmt.Sprintf(", refused at %s: ", r.Where)
	if r.Field != "" {
		text += r.Field + ": "
	}
	text += r.Reason
	if more := len(s.Refused) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

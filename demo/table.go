package demo

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// barWidth is how wide a share of all calls is drawn.
const barWidth = 10

// trailing is the blanks that the last column leaves where it is empty.
var trailing = regexp.MustCompile(`(?m) +$`)

// roomy is the number of rows from which on a terminal has room for the whole table below
// the text of a step.
const roomy = 22

// lines draws the view for a terminal with so many rows. A low terminal gets a line for
// each service, so that the text above them stays visible. There are never more lines than
// can be redrawn in place. Zero rows mean an unknown number.
func (v view) lines(rows int) []string {
	if rows == 0 || rows >= roomy {
		list := strings.Split("\n"+v.table(), "\n")
		if rows == 0 || len(list) < rows {
			return list
		}
	}
	list := strings.Split(v.summary()+v.footer(), "\n")
	return list[max(0, len(list)-max(1, rows-1)):]
}

// table draws the whole view.
func (v view) table() string { return v.columns() + "\n" + v.footer() }

func (v view) footer() string {
	var b strings.Builder
	for _, state := range v.registries() {
		fmt.Fprintf(&b, "registry   %s\n", state)
	}
	fmt.Fprintf(&b, "calls      %d answered, %d failed", v.answers, v.failures)
	if v.failures > 0 {
		b.WriteString(", the last one: " + plain.Text(v.failure))
	}
	return b.String()
}

// summary is the columns with a line for each service.
func (v view) summary() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tBACKENDS IN THE LAST SECOND")
	for _, s := range v.services {
		var backends []string
		for _, backend := range s.backends {
			backends = append(backends, plain.Text(backend.name)+" "+backend.short())
		}
		fmt.Fprintf(w, "%s\t%s\n", plain.Text(s.name), strings.Join(backends, ", "))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// columns are the part of the table that has some.
func (v view) columns() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tBACKEND\tANSWERED\tLAST SECOND\tLAST CHANGE")
	for _, s := range v.services {
		name, change := plain.Text(s.name), plain.Text(s.change.backend)+" "+s.change.text()
		if s.change.backend == "" {
			change = ""
		}
		for _, backend := range s.backends {
			fmt.Fprintf(w, "%s\t%s\t%8d\t%s\t%s\n", name, plain.Text(backend.name), backend.answers, backend.lately(), change)
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

// short is lately in a few letters.
func (b backendView) short() string {
	return cmp.Or(b.state, fmt.Sprintf("%.0f %%", b.share*100))
}

// text describes the change and its latency.
func (c change) text() string {
	verb := "left"
	if c.joined {
		verb = "joined"
	}
	return fmt.Sprintf("%s %s after the registry changed", verb, ms(c.after))
}

// registries are the states of the sources, each in a line, with its name if there are
// several. They have words of the registry.
func (v view) registries() (list []string) {
	if v.trouble != nil {
		return []string{plain.Text(v.trouble.Error())}
	}
	for _, s := range v.sources {
		text := describe(s)
		if len(v.sources) > 1 {
			text = s.Name + ": " + text
		}
		list = append(list, plain.Text(text))
	}
	return list
}

func describe(s admin.Source) string {
	text := fmt.Sprintf("%s, %d services, %d endpoints", s.State, s.Services, s.Endpoints)
	if s.Reason != "" {
		text += ", " + s.Reason
	}
	if len(s.Rejected) == 0 {
		return text + ", nothing rejected"
	}
	r := s.Rejected[0]
	text += fmt.Sprintf(", rejected at %s: ", r.Where)
	if r.Field != "" {
		text += r.Field + ": "
	}
	text += r.Reason
	if more := len(s.Rejected) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

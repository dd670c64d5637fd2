package demo

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

var up = regexp.MustCompile(`\x1b\[(\d+)A`)

// The table is drawn anew in place, which reaches no further than the terminal
// does: what is higher is never erased, and fills the screen.
func TestDemoFitsALowTerminal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*until.Patience)
	defer cancel()
	out := &transcript{}
	out.when("nothing is rejected, no call failed", cancel)
	rows := func() int { return 12 }
	if err := Run(ctx, Config{Out: out, Terminal: true, Rows: rows, Deadline: until.Patience, pause: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	highest := 0
	for _, m := range up.FindAllStringSubmatch(out.String(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, n)
	}
	const table = 7 // a heading, three services, two registries, the calls
	if highest != table {
		t.Errorf("the table has %d lines; of 12 rows %d leave room for what is said", highest, table)
	}
	if !strings.Contains(out.String(), "reviews    reviews-1 ") || !strings.Contains(out.String(), "reviews-3 ") {
		t.Errorf("the backends are not shown:\n%s", out.String())
	}
}

func TestTableIsNeverHigherThanTheTerminal(t *testing.T) {
	t.Parallel()
	var v view
	for _, name := range []string{"a", "b", "c"} {
		s := serviceView{name: name}
		for i := range 20 {
			s.backends = append(s.backends, backendView{name: name + "-" + strconv.Itoa(i)})
		}
		v.services = append(v.services, s)
	}
	for rows := 1; rows < 100; rows++ {
		lines := v.lines(rows)
		if len(lines) > max(1, rows-1) || !strings.HasPrefix(lines[len(lines)-1], "calls ") {
			t.Errorf("in %d rows it has %d lines, the last %q", rows, len(lines), lines[len(lines)-1])
		}
	}
	if n := len(v.lines(0)); n != 64 {
		t.Errorf("in a terminal of unknown size it has %d lines", n)
	}
}

// What a registry says cannot move the cursor or forge a line.
func TestWordsOfTheRegistryArePlain(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{0, 12} {
		t.Run(strconv.Itoa(rows), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*until.Patience)
			defer cancel()
			const name = "evil\x1b[31m\u202e.yaml"
			out := &transcript{}
			out.when("Now it is yours", func() {
				path := folder.FindStringSubmatch(out.String())[1] + "/registry/" + name
				if err := os.WriteFile(path, []byte("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: \"\\e[2J\"}\nspec: {}\n"), 0o600); err != nil {
					t.Error(err)
				}
			})
			out.when(`rejected at evil\x1b[31m\u202e.yaml`, cancel)
			if err := Run(ctx, Config{Out: out, Terminal: true, Rows: func() int { return rows }, Deadline: until.Patience, pause: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			if strings.Contains(text, "\x1b[31m") || strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\u202e") {
				t.Errorf("it is shown as it is:\n%q", text)
			}
			if !strings.Contains(text, `rejected at evil\x1b[31m\u202e.yaml`) {
				t.Errorf("it is not shown:\n%q", text)
			}
		})
	}
}

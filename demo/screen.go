package demo

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// Control sequences of ECMA-48, which every terminal of today knows.
const (
	csiUp       = "\x1b[%dA"
	csiEraseRow = "\x1b[K"
	csiErase    = "\x1b[J"
	csiWrapOff  = "\x1b[?7l" // so that a long line stays one line
	csiWrapOn   = "\x1b[?7h"
	csiHide     = "\x1b[?25l" // the cursor
	csiUnhide   = "\x1b[?25h"
)

// screen is the output of the demo. On a terminal, text scrolls, and a table below it is
// updated in place. On other outputs the changes are lines of their own. It belongs to one
// goroutine.
type screen struct {
	out   io.Writer
	live  bool       // out is a terminal
	rows  func() int // the current number of rows; 0 if it is unknown
	table []string   // as shown
	state []string   // the last printed states of the sources
}

// say prints lines that stay.
func (s *screen) say(text string) {
	var b bytes.Buffer
	s.rewind(&b)
	b.WriteString(text + "\n")
	s.draw(&b)
	s.flush(&b)
}

// show shows the present state of things.
func (s *screen) show(v view) {
	if !s.live {
		s.showChanges(v)
		return
	}
	var b bytes.Buffer
	s.rewind(&b)
	s.table = v.lines(s.rows())
	s.draw(&b)
	s.flush(&b)
}

func (s *screen) showChanges(v view) {
	var b bytes.Buffer
	for _, c := range v.changes {
		fmt.Fprintf(&b, "  %s %s %s\n", c.at.Format("15:04:05.000"), plain.Text(c.backend), c.text())
	}
	before := s.state
	s.state = v.registries()
	for _, state := range s.state {
		if !slices.Contains(before, state) {
			fmt.Fprintf(&b, "  registry: %s\n", state)
		}
	}
	s.flush(&b)
}

// close leaves the terminal as it was found.
func (s *screen) close() {
	if s.live {
		fmt.Fprint(s.out, csiWrapOn, csiUnhide)
	}
}

// rewind goes back to where the table begins, and erases it.
func (s *screen) rewind(b *bytes.Buffer) {
	if len(s.table) > 0 {
		fmt.Fprintf(b, "\r"+csiUp+csiErase, len(s.table))
	}
}

func (s *screen) draw(b *bytes.Buffer) {
	if len(s.table) == 0 {
		return
	}
	b.WriteString(csiHide + csiWrapOff)
	for _, line := range s.table {
		b.WriteString(line + csiEraseRow + "\n")
	}
	b.WriteString(csiWrapOn)
}

// flush writes everything in one call, to avoid flicker. A failed write is ignored.
func (s *screen) flush(b *bytes.Buffer) { _, _ = s.out.Write(b.Bytes()) }

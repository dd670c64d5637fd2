package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
)

// watchPause is the time between two answers with --watch.
const watchPause = time.Second

// Control sequences that draw a screen over the one before.
const (
	csiHome     = "\x1b[H"
	csiEraseRow = "\x1b[K"
	csiErase    = "\x1b[J"
	csiWrapOff  = "\x1b[?7l" // so that a long line stays one line
	csiWrapOn   = "\x1b[?7h"
)

// watchFlag adds -w to a command that asks a running Isthmus.
func (f *Flags) watchFlag(c *cobra.Command) {
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "ask again every second until interrupted; tables only")
}

// run asks once, or with --watch until the command is interrupted. A terminal is drawn
// anew each time; on other outputs each answer that differs follows the one before. An
// error after the first answer is shown in its place: the instance may be restarting.
func (f *Flags) run(c *cobra.Command, ask func() error) error {
	if !f.watch {
		return ask()
	}
	if f.Format != term.AsTable {
		return errors.New("--watch prints tables only; leave out -o, or ask again for data")
	}
	out := c.OutOrStdout()
	defer c.SetOut(out)
	screen, redraw := term.Terminal(out)
	var last []byte
	for {
		var answer bytes.Buffer
		c.SetOut(&answer)
		err := ask()
		if c.Context().Err() != nil {
			return term.Wrong(errors.New("interrupted"))
		}
		if err != nil && last == nil && answer.Len() == 0 {
			return err
		}
		if err != nil {
			term.Say(&answer, "%v\n", err)
		}
		text := answer.Bytes()
		if redraw {
			text = drawn(text, term.Rows(screen))
		} else {
			text = fmt.Appendf(nil, "%s\n%s\n", time.Now().Format(time.DateTime), text)
		}
		if redraw || !bytes.Equal(answer.Bytes(), last) {
			if _, err := out.Write(text); err != nil { // one write, to avoid flicker
				return err
			}
		}
		last = answer.Bytes()
		select {
		case <-time.After(watchPause):
		case <-c.Context().Done():
			return term.Wrong(errors.New("interrupted"))
		}
	}
}

// drawn returns an answer as it is drawn over the one before, on a terminal with so many
// rows; 0 is unknown.
func drawn(answer []byte, rows int) []byte {
	lines := bytes.Split(bytes.TrimSuffix(answer, []byte("\n")), []byte("\n"))
	if more := len(lines) - (rows - 2); rows > 2 && more > 0 {
		lines = append(lines[:rows-2:rows-2], fmt.Appendf(nil, "%s more: enlarge the terminal", term.Count(more, "line")))
	}
	var b bytes.Buffer
	b.WriteString(csiWrapOff + csiHome)
	for _, line := range lines {
		b.Write(line)
		b.WriteString(csiEraseRow + "\n")
	}
	b.WriteString(csiErase + csiWrapOn)
	return b.Bytes()
}

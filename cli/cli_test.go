package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Help without an example leaves the reader to guess, and a script that uses the
// command has to know its exit statuses.
func TestEveryCommandHasAnExampleAndItsExitStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range commands(newRoot("test", io.Discard)) {
		if c.Example == "" || c.Short == "" || !strings.Contains(c.Long, "\n\nExit status: 0 ") {
			t.Errorf("%q: example %q, short %q, exit statuses in: %s", c.CommandPath(), c.Example, c.Short, c.Long)
		}
	}
}

// commands are a command and all below it, but for the shells of completion, whose
// help is the library's.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	if c.Name() == "completion" {
		return all
	}
	for _, below := range c.Commands() {
		all = append(all, commands(below)...)
	}
	return all
}

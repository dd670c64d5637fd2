package cli

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
)

// Help without an example leaves the reader to guess.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	root := newRoot("test", io.Discard)
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%q: example %q, short %q", c.Use, c.Example, c.Short)
		}
	}
}

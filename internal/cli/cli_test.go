package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// Help without an example leaves the reader to guess.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	for _, c := range append([]*cobra.Command{newRoot("test")}, newRoot("test").Commands()...) {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%q: example %q, short %q", c.Use, c.Example, c.Short)
		}
	}
}

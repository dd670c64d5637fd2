package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/internal/plain"
	"github.com/isthmus-mesh/isthmus/output"
)

// printHandOver prints the effect of a hand-over, if there are objects to hand over.
func printHandOver(c *cobra.Command, actions []output.Action) {
	would := map[output.Verb]int{}
	for _, a := range actions {
		would[a.HandOver]++
	}
	if would[output.Update]+would[output.Delete] == 0 {
		return
	}
	say(c.OutOrStdout(), "once they are handed over, it would update %d and delete %d of those that it leaves\n",
		would[output.Update], would[output.Delete])
}

// printRights prints the rights that the API server denies, and how to grant them.
func printRights(c *cobra.Command, r output.Rights) {
	out := c.OutOrStdout()
	if r.Reason != "" {
		say(out, "%s\n", r.Reason)
	}
	if len(r.Missing) == 0 {
		return
	}
	say(out, "the API server does not allow %s to\n", r.Subject)
	for _, right := range r.Missing {
		say(out, "    %s\n", right.String())
	}
	fmt.Fprint(out, "apply this, and what is needed is allowed:\n"+plain.Lines(r.Manifest))
}

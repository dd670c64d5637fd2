package inspect

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/output"
)

func newWriters() *cobra.Command {
	var flags Flags
	c := &cobra.Command{
		Use:   "writers",
		Short: "Show the outputs that write into another system, and what they could not write",
		Long: `Writers shows each output that writes into another system: its state, since when, who
leads among replicas, how many objects are there and how many are still to be written.
States: writing, standby (another replica writes), waiting (a source has to be listed
first), stale (the system cannot be reached; what is there stays).

Below the table are up to 20 objects that could not be written, that are skipped (left as
they are although they should change), and that were written in part, each with the reason.

Exit status: 0 they were printed, whatever their states; 1 no answer from the admin API;
2 wrong usage.`,
		Example: "  isthmus writers\n  isthmus writers -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.run(c, func() error {
				var writers []output.Writer
				if err := flags.Get(c.Context(), "/api/v1/writers", &writers); err != nil {
					return err
				}
				return term.Print(c, flags.Format, writers, func() error { return printWriters(c, writers) })
			})
		},
	}
	flags.Add(c)
	flags.watchFlag(c)
	return c
}

func printWriters(c *cobra.Command, writers []output.Writer) error {
	var rows [][]string
	for _, w := range writers {
		rows = append(rows, []string{
			w.Name, w.State, term.OrDash(w.Age), term.OrDash(w.Leader), strconv.Itoa(w.Objects), strconv.Itoa(w.Pending),
			strconv.Itoa(len(w.Failed)), strconv.Itoa(len(w.Held)), term.OrDash(w.Reason),
		})
	}
	if err := term.Table(c, []string{"output", "state", "for", "leader", "objects", "pending", "failed", "skipped", "reason"}, rows); err != nil {
		return err
	}
	for _, w := range writers {
		var failed, held, leftOut [][2]string
		for _, f := range w.Failed {
			failed = append(failed, [2]string{f.Object + ", tried " + strconv.Itoa(f.Tries) + " times within " + f.Age, f.Reason})
		}
		for _, h := range w.Held {
			held = append(held, [2]string{h.Object, h.Reason})
		}
		for _, o := range w.LeftOut {
			leftOut = append(leftOut, [2]string{o.Object, o.Reason})
		}
		printObjects(c, w.Name+" could not write", failed)
		printObjects(c, w.Name+" skips", held)
		printObjects(c, w.Name+" writes a part of", leftOut)
	}
	return nil
}

// printObjects prints the first objects of a list, each with a reason.
func printObjects(c *cobra.Command, title string, list [][2]string) {
	for _, one := range list[:min(shownRejections, len(list))] {
		term.Say(c.OutOrStdout(), "\n%s %s\n  %s\n", title, one[0], one[1])
	}
	if more := len(list) - shownRejections; more > 0 {
		term.Say(c.OutOrStdout(), "\n%s %d more: -o json shows all of them\n", title, more)
	}
}

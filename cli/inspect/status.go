package inspect

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// waitTimeout is the default of --timeout with --wait, and waitPause the time between two
// requests.
const (
	waitTimeout = 5 * time.Minute
	waitPause   = time.Second
)

func newStatus() *cobra.Command {
	var flags Flags
	var wait bool
	c := &cobra.Command{
		Use:   "status [--wait]",
		Short: "Show the problems of a running Isthmus, each with its age and the next step",
		Long: `Status asks a running Isthmus for everything that is unusual now: an instance that is
not ready and the clients that wait for it, registries that cannot be read or lack much,
rejected objects, a configuration file that is not in use, the disk, certificates,
outputs that cannot write, clients that NACK or do not answer, registries that
contradict each other, and services that lose listeners or routes to others.

It prints a line for each, errors before warnings before notices, with the command or
the edit that helps. Errors and warnings make the exit status 1; notices do not.

With --wait it asks again until the instance is ready without errors or warnings, for at
most --timeout (then 5m by default), and prints the last answer.

Exit status: 0 there are no errors or warnings; 1 there are, or no answer from the admin
API; 2 wrong usage.`,
		Example: "  isthmus status\n  isthmus status --wait --timeout 2m\n  isthmus status -o json\n" +
			"  kubectl -n isthmus exec deployment/isthmus -- isthmus status",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if wait && flags.watch {
				return errors.New("--wait and --watch exclude each other; remove one of them")
			}
			if wait && !c.Flags().Changed("timeout") {
				flags.timeout = term.Timeout(waitTimeout)
			}
			return flags.run(c, func() error { return showStatus(c, &flags, wait) })
		},
	}
	flags.Add(c)
	flags.watchFlag(c)
	c.Flags().BoolVar(&wait, "wait", false, "ask until the instance is ready without errors or warnings")
	return c
}

// showStatus prints the status. The error counts the findings.
func showStatus(c *cobra.Command, flags *Flags, wait bool) error {
	status, err := statusOf(c, flags, wait)
	if err != nil {
		return err
	}
	if err := term.Print(c, flags.Format, status, func() error { printStatus(c.OutOrStdout(), status); return nil }); err != nil {
		return err
	}
	if status.Wrong || !status.Ready {
		return term.Wrong(errors.New(countsOf(status)))
	}
	return nil
}

// statusOf asks for the status, once or until nothing is wrong. The last answer counts if
// the time is over.
func statusOf(c *cobra.Command, flags *Flags, wait bool) (admin.Status, error) {
	var last admin.Status
	answered := false
	once := *flags
	for until := time.Now().Add(time.Duration(flags.timeout)); ; {
		once.timeout = term.Timeout(max(time.Until(until), time.Millisecond))
		var status admin.Status
		err := once.Get(c.Context(), "/api/v1/status", &status)
		if err == nil {
			last, answered = status, true
		}
		switch over := !time.Now().Add(waitPause).Before(until); {
		case !wait || c.Context().Err() != nil:
			return last, err
		case err == nil && status.Ready && !status.Wrong, over && answered:
			return last, nil
		case over:
			return last, err
		}
		select {
		case <-time.After(waitPause):
		case <-c.Context().Done():
		}
	}
}

// countsOf counts the findings of a status.
func countsOf(s admin.Status) string {
	n := map[admin.Severity]int{}
	for _, f := range s.Findings {
		n[f.Severity]++
	}
	return strings.Join([]string{term.Count(n[admin.SeverityError], "error"), term.Count(n[admin.SeverityWarning], "warning"), term.Count(n[admin.SeverityNotice], "notice")}, ", ")
}

func printStatus(out io.Writer, s admin.Status) {
	ready := "ready"
	if !s.Ready {
		ready = "not ready"
	}
	term.Say(out, "%s, version %s, up for %s: %s, %s, %s, %s\n", ready, s.Version, s.Age,
		term.Count(s.Sources, "source"), term.Count(s.Services, "service"), term.Count(s.Endpoints, "endpoint"), term.Count(s.Clients, "client"))
	for _, f := range s.Findings {
		since := ""
		if f.Age != "" {
			since = " for " + f.Age
		}
		term.Say(out, "\n%s: %s%s: %s\n  next: %s\n", string(f.Severity), f.About, since, f.Problem, f.Next)
	}
	if len(s.Findings) == 0 {
		term.Say(out, "no errors, warnings or notices\n")
	}
}

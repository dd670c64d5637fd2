// Package cli is the command line: one file per command.
//
// Exit status is 0 when all is fine, 1 when the thing asked about is wrong, and
// 2 when the command was used wrongly.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitFine  = 0
	exitWrong = 1
	exitUsage = 2
)

// wrong is an error of the thing asked about, not of how it was asked.
type wrong struct{ error }

func (w wrong) Unwrap() error { return w.error }

// Main runs a command line and returns the exit status. It returns when ctx
// ends at the latest.
func Main(ctx context.Context, version string, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(version)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitFine
	}
	if w, ok := errors.AsType[wrong](err); ok {
		say(errOut, "%v\n", error(w))
		return exitWrong
	}
	say(errOut, "%v\nSee '%s --help'.\n", err, command.CommandPath())
	return exitUsage
}

func newRoot(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "isthmus",
		Short: "Join every service registry to every mesh",
		Long: `Isthmus mirrors service registries, merges them in one catalog, and delivers the
catalog to Envoy and gRPC clients over xDS.`,
		Example: `  isthmus demo                           see it at work, all on loopback
  isthmus validate --config isthmus.yaml
  isthmus serve --config isthmus.yaml
  isthmus services reviews.example.com   who holds what, and why`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newServe(version), newDemo(version), newValidate(), newVersion(version),
		newSources(), newServices(), newClients(),
	)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // the library's own lets any shell's name pass
			c.Args, c.RunE = cobra.NoArgs, needsShell
			c.Example = "  isthmus completion bash > /etc/bash_completion.d/isthmus"
		}
	}
	return root
}

func needsShell(c *cobra.Command, _ []string) error {
	return fmt.Errorf("name a shell: %s bash, fish, powershell or zsh", c.CommandPath())
}

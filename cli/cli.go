// Package cli is the command line: one file per command. Commands that look at a running
// Isthmus are in package inspect, commands of the certificate authority in package ca, and
// printing is in package term.
//
// Exit status is 0 on success. It is 1 when the checked object is faulty or the output
// could not be printed, and 2 when the command was used wrongly. A command that a signal
// interrupts adds the number of the signal to 128.
package cli

import (
	"context"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/ca"
	"github.com/isthmus-mesh/isthmus/cli/get"
	"github.com/isthmus-mesh/isthmus/cli/inspect"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// Exit statuses.
const (
	exitFine  = 0
	exitWrong = 1
	exitUsage = 2
)

// Main runs a command line and returns the exit status. It returns when ctx
// ends at the latest.
func Main(ctx context.Context, version string, args []string, in io.Reader, out, errOut io.Writer) int {
	printed := &outlet{w: out}
	root := newRoot(version, printed)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetErr(errOut)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case printed.closed():
		return signaled + int(syscall.SIGPIPE)
	case printed.err != nil:
		term.Say(errOut, "%v: not everything was printed; make room there, or print elsewhere\n", printed.err)
		return exitWrong
	case err == nil:
		return exitFine
	}
	if term.IsWrong(err) {
		term.Say(errOut, "%v\n", err)
		if by, ok := interruption(ctx); ok {
			return by.status()
		}
		return exitWrong
	}
	term.Say(errOut, "%v\nSee '%s --help'.\n", err, command.CommandPath())
	return exitUsage
}

// newRoot returns the command line, which prints to out.
func newRoot(version string, out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:     "isthmus",
		Short:   "Join every service registry to every mesh",
		Version: version,
		Long: `Isthmus mirrors service registries, merges them in one catalog, and delivers the
catalog to Envoy and gRPC clients over xDS, and to Istio in a Kubernetes API server.

Exit status: 0 all is fine, 1 the thing asked about is wrong or does not answer,
2 wrong usage, 128 and the number of the signal that interrupted the command.`,
		Example: `  isthmus demo                           see it at work, all on loopback
  isthmus validate isthmus.yaml
  isthmus serve isthmus.yaml
  isthmus status                         the problems of a running Isthmus, with the next step
  isthmus services reviews.example.com   its endpoints, and the record each came from`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(out)
	root.SetVersionTemplate(versionOf(version).text())
	root.AddCommand(
		newServe(version), newDemo(version), newValidate(), newDiff(), newVersion(version),
		newBootstrap(),
	)
	root.AddCommand(inspect.Commands()...)
	root.AddCommand(get.Command(), ca.Command())
	root.InitDefaultCompletionCmd() // the completion command prints to the root's output by now
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // the library's own command accepts any shell's name
			c.Args, c.RunE = cobra.NoArgs, needsShell
			c.Long = `Completion prints a script that makes a shell complete the commands and flags of
isthmus. Put it where your shell looks for completions, and open a new shell;
'isthmus completion SHELL --help' says where that is.

Exit status: 0 it was printed, 2 no shell that is known was named.`
			c.Example = "  isthmus completion bash > /etc/bash_completion.d/isthmus"
		}
	}
	return root
}

func needsShell(c *cobra.Command, _ []string) error {
	return fmt.Errorf("name a shell: %s bash, fish, powershell or zsh", c.CommandPath())
}

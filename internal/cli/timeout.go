package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// timeout is how long a command waits. As a flag's value it is checked before the command
// starts.
type timeout time.Duration

// timeoutFlag adds --timeout to a command that waits for another process.
func timeoutFlag(c *cobra.Command, t *timeout, otherwise time.Duration, usage string) {
	*t = timeout(otherwise)
	c.Flags().Var(t, "timeout", usage)
}

// String implements the flag's value, as Set and Type do.
func (t *timeout) String() string { return time.Duration(*t).String() }

// Set parses the duration from the command line.
func (t *timeout) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return errors.New("use a duration above zero, such as 30s or 2m")
	}
	*t = timeout(d)
	return nil
}

// Type is the value's type in the help text.
func (t *timeout) Type() string { return "duration" }

package term

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// Timeout is how long a command waits. As a flag's value it is checked before the command
// starts.
type Timeout time.Duration

// TimeoutFlag adds --timeout to a command that waits for another process.
func TimeoutFlag(c *cobra.Command, t *Timeout, otherwise time.Duration, usage string) {
	*t = Timeout(otherwise)
	c.Flags().Var(t, "timeout", usage)
}

// String implements the flag's value, as Set and Type do.
func (t *Timeout) String() string { return time.Duration(*t).String() }

// Set parses the duration from the command line.
func (t *Timeout) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return errors.New("use a duration above zero, such as 30s or 2m")
	}
	*t = Timeout(d)
	return nil
}

// Type is the value's type in the help text.
func (t *Timeout) Type() string { return "duration" }

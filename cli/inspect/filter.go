package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
)

// oneOf is the value of a flag that has to be one of some words, in upper or lower case.
type oneOf struct {
	value string
	words []string
}

// String implements the flag's value, as Set and Type do.
func (o *oneOf) String() string { return o.value }

// Set parses the word from the command line.
func (o *oneOf) Set(s string) error {
	i := slices.IndexFunc(o.words, func(word string) bool { return strings.EqualFold(word, s) })
	if i < 0 {
		return fmt.Errorf("use %s", strings.Join(o.words, ", "))
	}
	o.value = o.words[i]
	return nil
}

// Type is the value's type in the help text.
func (o *oneOf) Type() string { return "word" }

// addTo adds the flag to a command, and completes its words.
func (o *oneOf) addTo(c *cobra.Command, flag, usage string, words ...string) {
	o.words = words
	c.Flags().Var(o, flag, usage+": "+strings.Join(words, ", "))
	completeFlag(c, flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return term.Completions(words, begun), cobra.ShellCompDirectiveNoFileComp
	})
}

// noMatch says on the error output that filters match nothing of a list that is not empty.
func noMatch(c *cobra.Command, all, left int, noun string) {
	if all > 0 && left == 0 {
		term.Say(c.ErrOrStderr(), "none of %s matches the filters\n", term.Count(all, noun))
	}
}

// unknownSource returns an error if no source has a name.
func unknownSource(f *Flags, c *cobra.Command, name string) error {
	names := f.sourceNames(c)
	if len(names) == 0 || slices.Contains(names, name) {
		return nil
	}
	return term.Wrong(fmt.Errorf("no source %q; there are: %s", name, strings.Join(names, ", ")))
}

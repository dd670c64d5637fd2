package term

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// Format is the format in which a command prints data. As a flag's value it is checked
// before the command starts.
type Format string

// The formats.
const (
	AsTable Format = "table"
	AsJSON  Format = "json"
	AsYAML  Format = "yaml"
)

// FormatFlag adds -o to a command that prints data.
func FormatFlag(c *cobra.Command, f *Format) {
	*f = AsTable
	c.Flags().VarP(f, "output", "o", "how to print: table, json or yaml")
}

// String implements the flag's value, as Set and Type do.
func (f *Format) String() string { return string(*f) }

// Set parses the format from the command line.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case AsTable, AsJSON, AsYAML:
		*f = Format(s)
		return nil
	default:
		return errors.New("use table, json or yaml")
	}
}

// Type is the value's type in the help text.
func (f *Format) Type() string { return "format" }

// Print prints a value as JSON or YAML, or lets table print it.
func Print(c *cobra.Command, f Format, v any, table func() error) error {
	switch f {
	case AsJSON:
		encoder := json.NewEncoder(plain.JSONWriter(c.OutOrStdout()))
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case AsYAML:
		return printYAML(c.OutOrStdout(), v)
	case AsTable:
	}
	return table()
}

// printYAML prints a value as YAML. YAML leaves characters unescaped that could corrupt a
// terminal: they are shown by their number.
func printYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(plain.JSONForYAML(text)); err != nil {
		return err
	}
	_, err = io.WriteString(w, plain.Lines(string(text)))
	return err
}

// Say prints formatted text. Its arguments, which may be foreign text, cannot break out of
// their place in it.
func Say(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = plain.Text(arg)
		case error:
			args[i] = plain.Lines(arg.Error())
		case fmt.Stringer:
			args[i] = plain.Text(arg.String())
		}
	}
	fmt.Fprintf(w, format, args...)
}

// Table writes rows under a heading, in columns.
func Table(c *cobra.Command, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(heading, "\t")))
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				Say(w, "\t")
			}
			Say(w, "%s", cell)
		}
		Say(w, "\n")
	}
	return w.Flush()
}

// OrDash replaces an empty text by a dash.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// mostKinds bounds the printed kinds of objects.
const mostKinds = 20

// ByKind prints a line for each kind of objects, with their number. Each line has the same
// beginning.
func ByKind[K ~string](w io.Writer, beginning string, kinds map[K]int) {
	names := slices.Sorted(maps.Keys(kinds))
	for _, kind := range names[:min(mostKinds, len(names))] {
		Say(w, "%s%s of kind %s\n", beginning, Count(kinds[kind], "object"), string(kind))
	}
	if more := len(names) - mostKinds; more > 0 {
		Say(w, "%sobjects of %d more kinds; -o json shows all of them\n", beginning, more)
	}
}

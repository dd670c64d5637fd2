package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// format is the format in which a command prints data. As a flag's value it is checked
// before the command starts.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

// formatFlag adds -o to a command that prints data.
func formatFlag(c *cobra.Command, f *format) {
	*f = asTable
	c.Flags().VarP(f, "output", "o", "how to print: table, json or yaml")
}

// String implements the flag's value, as Set and Type do.
func (f *format) String() string { return string(*f) }

// Set parses the format from the command line.
func (f *format) Set(s string) error {
	switch format(s) {
	case asTable, asJSON, asYAML:
		*f = format(s)
		return nil
	default:
		return errors.New("use table, json or yaml")
	}
}

// Type is the value's type in the help text.
func (f *format) Type() string { return "format" }

// printAs prints a value as JSON or YAML, or lets table print it.
func printAs(c *cobra.Command, f format, v any, table func() error) error {
	switch f {
	case asJSON:
		encoder := json.NewEncoder(plain.JSONWriter(c.OutOrStdout()))
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case asYAML:
		return printYAML(c.OutOrStdout(), v)
	case asTable:
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

// say prints formatted text. Its arguments, which may be foreign text, cannot break out of
// their place in it.
func say(w io.Writer, format string, args ...any) {
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

// table writes rows under a heading, in columns.
func table(c *cobra.Command, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(heading, "\t")))
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				say(w, "\t")
			}
			say(w, "%s", cell)
		}
		say(w, "\n")
	}
	return w.Flush()
}

// orDash replaces an empty text by a dash.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

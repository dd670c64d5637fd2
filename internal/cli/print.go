package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is how a command prints data. As a flag's value it is checked before
// the command does anything.
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

// Set takes the format from the command line.
func (f *format) Set(s string) error {
	switch format(s) {
	case asTable, asJSON, asYAML:
		*f = format(s)
		return nil
	default:
		return errors.New("use table, json or yaml")
	}
}

// Type is what help shows for a value.
func (f *format) Type() string { return "format" }

// printAs prints a value as JSON or YAML, or lets table print it.
func printAs(c *cobra.Command, f format, v any, table func() error) error {
	switch f {
	case asJSON:
		encoder := json.NewEncoder(c.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case asYAML:
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = c.OutOrStdout().Write(text)
		return err
	case asTable:
	}
	return table()
}

// table writes rows under a heading, in columns.
func table(c *cobra.Command, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(heading, "\t")))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// orDash stands in for what is empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// formatFlag adds -o to a command that prints data.
func formatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", "how to print: table, json or yaml")
}

// printAs prints a value as JSON or YAML, or lets table print it.
func printAs(c *cobra.Command, format string, v any, table func() error) error {
	switch format {
	case "table":
		return table()
	case "json":
		encoder := json.NewEncoder(c.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = c.OutOrStdout().Write(text)
		return err
	default:
		return fmt.Errorf("--output %q is none of table, json, yaml", format)
	}
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

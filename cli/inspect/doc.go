// Package inspect has the commands that look at a running Isthmus, one file per command.
// They read its admin API, and print the answers as tables, JSON or YAML.
//
// Place in the path: outside. The commands share no state with the process that they ask.
package inspect

import "github.com/spf13/cobra"

// Commands returns new commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newStatus(), newEvents(), newSources(), newServices(), newExplain(), newClients(), newWriters()}
}

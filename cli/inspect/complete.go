package inspect

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

const completeTimeout = 2 * time.Second // a person waits for it at the keyboard

// completion completes an argument or the value of a flag by names of a running Isthmus.
type completion = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completed completes the first argument by the names that ask returns. If there is no
// answer, it completes nothing and prints nothing.
func (f *Flags) completed(ask func(c *cobra.Command) []string) completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f.timeout = min(f.timeout, term.Timeout(completeTimeout))
		return term.Completions(ask(c), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

func (f *Flags) sourceNames(c *cobra.Command) (names []string) {
	var sources []admin.Source
	if f.Get(c.Context(), "/api/v1/sources", &sources) == nil {
		for _, s := range sources {
			names = append(names, s.Name)
		}
	}
	return names
}

func (f *Flags) hosts(c *cobra.Command) (hosts []string) {
	var services []admin.Service
	if f.Get(c.Context(), "/api/v1/services", &services) == nil {
		for _, s := range services {
			hosts = append(hosts, s.Host)
		}
	}
	return hosts
}

func (f *Flags) clientIDs(c *cobra.Command) (ids []string) {
	var clients []admin.Client
	if f.Get(c.Context(), "/api/v1/clients", &clients) == nil {
		for _, client := range clients {
			ids = append(ids, client.ID)
		}
	}
	return ids
}

// completeFlag completes the value of a flag by the names that ask returns, or by a fixed
// list. The flag exists.
func completeFlag(c *cobra.Command, flag string, complete completion) {
	if err := c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return complete(c, nil, begun)
	}); err != nil {
		panic(err)
	}
}

package inspect

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
)

// idle is the state of a type of which nothing had to be sent, as the admin API has it.
const idle = "idle"

// shownState returns the state of a client's type or resource in the words of istioctl
// proxy-status. The admin API keeps its own.
func shownState(state string) string {
	switch state {
	case "accepted":
		return "SYNCED"
	case idle:
		return "NOT SENT"
	case "refused":
		return "NACKED"
	default:
		return strings.ToUpper(state)
	}
}

// clientFilter selects clients. Its zero value selects all of them.
type clientFilter struct {
	output, state oneOf
	namespace     string
}

func (f *clientFilter) addTo(c *cobra.Command) {
	var outputs []string
	for _, kind := range config.Known().Outputs {
		outputs = append(outputs, kind.Name)
	}
	f.output.addTo(c, "served-by", "only clients of this output", outputs...)
	f.state.addTo(c, "state", "only types in this state", "synced", "not-sent", "waiting", "nacked")
	c.Flags().StringVar(&f.namespace, "namespace", "", "only clients of this namespace")
}

func (f *clientFilter) any() bool {
	return f.output.value != "" || f.state.value != "" || f.namespace != ""
}

// of returns the selected clients, each with the selected types.
func (f *clientFilter) of(clients []admin.Client) []admin.Client {
	if !f.any() {
		return clients
	}
	return slices.DeleteFunc(clients, func(c admin.Client) bool {
		return f.output.value != "" && c.Output != f.output.value || f.namespace != "" && c.Namespace != f.namespace || !f.selectTypes(c)
	})
}

// selectTypes removes the types of a client in other states, and reports whether any is
// left. A client that has asked for nothing was sent nothing.
func (f *clientFilter) selectTypes(c admin.Client) bool {
	if f.state.value == "" {
		return true
	}
	selected := func(state string) bool {
		return strings.EqualFold(strings.ReplaceAll(shownState(state), " ", "-"), f.state.value)
	}
	if len(c.Types) == 0 {
		return selected(idle)
	}
	maps.DeleteFunc(c.Types, func(_ string, t admin.ClientType) bool { return !selected(t.State) })
	return len(c.Types) > 0
}

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/cli/inspect"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
)

// splitChange is a split that a reload to another configuration adds, changes or removes.
type splitChange struct {
	Change string             `json:"change"`         // added, changed or removed
	From   *admin.ConfigSplit `json:"from,omitempty"` // in the configuration in use
	To     *admin.ConfigSplit `json:"to,omitempty"`   // in the file
	admin.SplitPreview
}

const (
	added   = "added"
	changed = "changed"
)

// splitChanges compares the splits of both configurations, in the order of hosts and
// namespaces, without their effects.
func splitChanges(now []admin.ConfigSplit, wanted *config.Config) []splitChange {
	current := &config.Config{}
	from, to := map[catalog.ServiceKey]*admin.ConfigSplit{}, map[catalog.ServiceKey]*admin.ConfigSplit{}
	for i, s := range now {
		from[catalog.KeyOf(s.Namespace, s.Host)] = &now[i]
		one := config.Split{Host: s.Host, Namespace: s.Namespace, Locality: s.Locality}
		for _, b := range s.Backends {
			one.Backends = append(one.Backends, config.Backend(b))
		}
		current.Splits = append(current.Splits, one)
	}
	for _, s := range app.Splits(wanted) {
		to[catalog.KeyOf(s.Namespace, s.Host)] = &s
	}
	list, was, is := []splitChange{}, current.Order().Splits, wanted.Order().Splits
	for key := range was {
		switch {
		case to[key] == nil:
			list = append(list, splitChange{Change: removed, From: from[key]})
		case !was[key].Equal(is[key]):
			list = append(list, splitChange{Change: changed, From: from[key], To: to[key]})
		}
	}
	for key := range is {
		if from[key] == nil {
			list = append(list, splitChange{Change: added, To: to[key]})
		}
	}
	slices.SortFunc(list, func(a, b splitChange) int {
		x, y := a.asked(), b.asked()
		return cmp.Or(cmp.Compare(x.Host, y.Host), cmp.Compare(x.Namespace, y.Namespace))
	})
	return list
}

// asked returns the wanted split; without backends if there is none.
func (s splitChange) asked() admin.ConfigSplit {
	if s.To != nil {
		return *s.To
	}
	return admin.ConfigSplit{Host: s.From.Host, Namespace: s.From.Namespace}
}

// foresee has a running Isthmus tell the effects of the changes. Unknown are the sources that
// it does not read yet.
func foresee(c *cobra.Command, flags *inspect.Flags, list []splitChange, unknown []string) error {
	if len(list) == 0 {
		return nil
	}
	var asked []admin.ConfigSplit
	for _, s := range list {
		asked = append(asked, s.asked())
	}
	var effects []admin.SplitPreview
	if err := flags.Ask(c.Context(), "/api/v1/splits/preview", asked, &effects); err != nil {
		return err
	}
	if len(effects) != len(list) {
		return fmt.Errorf("the Isthmus at %s answers for %d of %d splits; compare 'isthmus version'", flags.URL, len(effects), len(list))
	}
	for i, effect := range effects {
		list[i].SplitPreview = effect
		for _, b := range asked[i].Backends {
			if slices.Contains(unknown, b.Source) {
				list[i].Problems = append(list[i].Problems, fmt.Sprintf("source %s would be added: its endpoints are not known yet", b.Source))
			}
		}
	}
	return nil
}

func printSplitChanges(c *cobra.Command, list []splitChange) {
	out := c.OutOrStdout()
	for _, s := range list {
		of := s.Host
		if s.Namespace != "" {
			of += " in namespace " + s.Namespace
		}
		term.Say(out, "split of %s would be %s: %s -> %s\n", of, s.Change, backends(s.From), backends(s.To))
		for _, share := range s.Now {
			term.Say(out, "  now, port %d: %s\n", share.ServicePort, inspect.Share(share))
		}
		for _, share := range s.Expected {
			term.Say(out, "  expected, port %d: %s\n", share.ServicePort, inspect.Share(share))
		}
		for _, problem := range s.Problems {
			term.Say(out, "  warning: %s\n", problem)
		}
		term.Say(out, "  touches %s: %d served in addition, %d no longer served, %d with another weight\n",
			term.Count(s.Endpoints.Added+s.Endpoints.Removed+s.Endpoints.Reweighted, "endpoint"), s.Endpoints.Added, s.Endpoints.Removed, s.Endpoints.Reweighted)
		term.Say(out, "  touches %s with resources of the host\n", term.Count(s.Clients, "connected client"))
	}
}

// backends lists the backends of a split with their weights.
func backends(s *admin.ConfigSplit) string {
	if s == nil {
		return "no split"
	}
	var list []string
	for _, b := range s.Backends {
		list = append(list, fmt.Sprintf("%s %d", inspect.Backend(b.Host, b.Source, b.Labels), b.Weight))
	}
	return fmt.Sprintf("%s (locality %s)", strings.Join(list, ", "), s.Locality)
}

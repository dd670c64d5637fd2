package inspect

import (
	"cmp"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/model"
)

// showRules prints the DestinationRules with which Istio obeys the shares of a host exactly:
// one for each namespace that has the host with a split.
func showRules(c *cobra.Command, flags *Flags, host string) error {
	var services []admin.Service
	if err := flags.Get(c.Context(), "/api/v1/services/"+url.PathEscape(host), &services); err != nil {
		return err
	}
	var rules []istio.Object
	for _, s := range services {
		if s.SharesLocality == "" || !compose.TakesShares(model.Resolution(s.Resolution)) {
			continue
		}
		written := cmp.Or(s.Written, s.Host)
		if reason := compose.NoSharesRule(written); reason != "" {
			return term.Wrong(fmt.Errorf("%s: %s", s.Host, reason))
		}
		rules = append(rules, istio.Object{
			Namespace: s.Namespace, Name: compose.NameOf(s.Host), Spec: compose.SharesRule(written, s.ExportTo, s.SharesLocality == "ignore"),
		})
	}
	if len(rules) == 0 {
		return term.Wrong(fmt.Errorf("%s has no split in the configuration, so its endpoints need no DestinationRule", host))
	}
	format := flags.Format
	if format == term.AsTable {
		format = term.AsYAML
	}
	for i, rule := range rules {
		if i > 0 && format == term.AsYAML {
			fmt.Fprintln(c.OutOrStdout(), "---")
		}
		if err := term.Print(c, format, rule, nil); err != nil {
			return err
		}
	}
	return nil
}

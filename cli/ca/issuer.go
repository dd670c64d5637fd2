package ca

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

func newIssuer() *cobra.Command {
	var dir, rootKey string
	var ttl time.Duration
	c := &cobra.Command{
		Use:   "issuer --dir DIR [--root-key FILE]",
		Short: "Make the next issuing certificate, signed by the root",
		Long: `Issuer makes the issuing certificate that signs certificates from then on, with a new key. It
needs the key of the root, which no other command and no Isthmus needs, but for a rotation of the
root. So root-key.pem may be moved away in between: name it by --root-key.

A running Isthmus takes the issuing certificate within a few seconds, and needs no restart. Clients
trust the root, so they need nothing. Certificates of the issuing certificate before stay valid.

An issuing certificate is valid for 90 days at most. Run the command long before its end, such as
once a month: all certificates expire with it. 'isthmus status' and 'isthmus ca show' warn when a
third of its validity is left.

A folder of an earlier version has no issuing certificate, and its root signs directly. The command
makes the first one. A copy of the folder on another machine needs to be replaced.

Exit status: 0 the issuing certificate is there; 1 the folder or the key of the root cannot be
used; 2 wrong usage.`,
		Example: `  isthmus ca issuer --dir /etc/isthmus/ca
  isthmus ca issuer --dir /etc/isthmus/ca --root-key /media/vault/root-key.pem`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found := checkDir(dir)
			if ttl < authority.ShortestIssuing || ttl > authority.LongestIssuing {
				found = append(found, &authority.Invalid{Field: "ttl", Reason: fmt.Sprintf("%s is out of range; use from 1h to %dh, such as 720h", ttl, authority.LongestIssuing/time.Hour)})
			}
			if err := usage(found); err != nil {
				return err
			}
			a, err := authority.RenewIssuing(dir, rootKey, ttl, time.Now())
			if err != nil {
				return term.Wrong(err)
			}
			warn(c, secretfile.Warnings(append(authority.Secrets(dir), rootKey)...))
			term.Say(c.OutOrStdout(), "%s: the next issuing certificate signs, and is valid until %s\n", dir, a.Issuing().NotAfter.UTC().Format(time.RFC3339))
			return nil
		},
	}
	dirFlag(c, &dir)
	c.Flags().StringVar(&rootKey, "root-key", "", "the file with the key of the root; root-key.pem in the folder if empty")
	_ = c.MarkFlagFilename("root-key")
	c.Flags().DurationVar(&ttl, "ttl", authority.LongestIssuing, "how long the issuing certificate is valid, from 1h to 2160h")
	return c
}

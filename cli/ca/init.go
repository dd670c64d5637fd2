package ca

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

func newInit() *cobra.Command {
	var dir, name string
	c := &cobra.Command{
		Use:   "init --dir DIR --trust-domain DOMAIN",
		Short: "Make an authority in a folder",
		Long: `Init makes the folder of an authority: a root certificate for the trust domain, valid
for 10 years, an issuing certificate, valid for 90 days, and a key that signs tokens. Only its
owner can read the private keys.

The issuing certificate signs the certificates of workloads and listeners. The key of the root,
root-key.pem, is needed only for the next one, by 'isthmus ca issuer': move it away, to a place
that only you can reach.

It changes no file that is there, and takes none that another user can have put there. If it was interrupted, run it again: it finishes the
authority. Back up the folder: without its keys, nothing can be signed any more.

Exit status: 0 the authority is there; 1 the folder has one already, has other files or files
that another user can have put there, or cannot be written; 2 wrong usage.`,
		Example: "  isthmus ca init --dir /etc/isthmus/ca --trust-domain cluster.local",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found := checkDir(dir)
			domain, err := authority.TrustDomain(name)
			if err != nil {
				found = append(found, &authority.Invalid{Field: "trust-domain", Reason: err.Error()})
			}
			if err := usage(found); err != nil {
				return err
			}
			_, err = authority.Create(dir, domain, time.Now())
			if err != nil {
				return term.Wrong(err)
			}
			warn(c, secretfile.Warnings(authority.Secrets(dir)...))
			term.Say(c.OutOrStdout(), "%s: the authority of trust domain %s is ready; back it up, and move root-key.pem to a safe place until 'isthmus ca issuer' needs it; next, issue a token with 'isthmus ca token --dir %s --namespace NAMESPACE --account ACCOUNT'\n",
				dir, domain.Name(), dir)
			return nil
		},
	}
	dirFlag(c, &dir)
	c.Flags().StringVar(&name, "trust-domain", "", "the trust domain of all identities, such as cluster.local")
	return c
}

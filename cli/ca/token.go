package ca

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

func newToken() *cobra.Command {
	var dir, out string
	var grant authority.Grant
	c := &cobra.Command{
		Use:   "token --dir DIR --namespace NAMESPACE --account ACCOUNT [--out FILE]",
		Short: "Issue a token for a service account",
		Long: `Token issues a token (JWT). With --out it writes the token, and nothing else, to a file that
only its owner can read. Otherwise it prints the token on the output. The id and expiry are on
the error output. A client that presents the token to Isthmus has the identity of the service
account, until the token expires or is revoked.

With --address the token is accepted only from these addresses. The flag may be repeated.

The file is replaced whole. It is not written through links of other users. Isthmus itself
stores the token nowhere. 'isthmus ca tokens' lists the issued tokens.

Exit status: 0 the token was printed or written; 1 there is no authority in the folder, the
folder or FILE cannot be written, or the account is revoked; 2 wrong usage.`,
		Example: `  isthmus ca token --dir /etc/isthmus/ca --namespace shop --account web --out web.token
  isthmus ca token --dir /etc/isthmus/ca --namespace shop --account web --address 10.0.0.0/24 --ttl 24h --out web.token`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := usage(append(checkDir(dir), grant.Check()...)); err != nil {
				return err
			}
			if out == "" && c.Flags().Changed("out") {
				return errors.New("--out: empty; name a file, or leave the flag out to have the token printed")
			}
			a, err := authority.Open(dir)
			if err != nil {
				return term.Wrong(err)
			}
			warnUnlisted(c, a.Folder)
			text, entry, err := a.Issue(grant, time.Now())
			if err != nil {
				return term.Wrong(err)
			}
			term.Say(c.ErrOrStderr(), "token %s expires at %s; to revoke it: isthmus ca revoke --dir %s --token %s\n",
				entry.ID, entry.Expires.Format(time.RFC3339), dir, entry.ID)
			if out != "" {
				if err := secretfile.Write(out, []byte(text)); err != nil {
					return term.Wrong(fmt.Errorf("--out: %w; then issue another token, and revoke this one", err))
				}
				term.Say(c.ErrOrStderr(), "%s has the token\n", out)
				return nil
			}
			if onTerminal(c.OutOrStdout()) {
				text += "\n" // not into a file: Envoy sends the file as it is, and rejects a newline
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	dirFlag(c, &dir)
	c.Flags().StringVar(&out, "out", "", "write the token to this file, which only its owner can read, and print nothing")
	accountFlags(c, &grant.Namespace, &grant.Account)
	c.Flags().StringSliceVar(&grant.Addresses, "address", nil, "accept the token only from this block of addresses, such as 10.0.0.0/24; may be repeated")
	c.Flags().DurationVar(&grant.TTL, "ttl", authority.DefaultTTL, "how long the token is valid, from 1m to 8760h")
	return c
}

// onTerminal reports whether an output is a terminal.
func onTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// accountFlags adds the flags that name an account.
func accountFlags(c *cobra.Command, namespace, account *string) {
	c.Flags().StringVar(namespace, "namespace", "", "the namespace of the service account")
	c.Flags().StringVar(account, "account", "", "the service account")
}

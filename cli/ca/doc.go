// Package ca has the commands of the built-in certificate authority, one file per command.
// They work on its folder. The list of certificates and the last steps of a rotation ask each running
// Isthmus; the other commands need none.
//
// Place in the path: outside. The commands share no state, and several may run at a time.
package ca

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// Command returns the command with its subcommands.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "ca",
		Short: "Make a certificate authority, issue and revoke its tokens, and renew its certificates",
		Long: `Ca works on the folder of the built-in certificate authority. Tokens prove to Isthmus
which service account a workload has. The commands need no running Isthmus, but for
certificates and the last steps of rotate, and several may run at a time.

Exit status: 0 the command did its work, 1 it could not, 2 wrong usage.`,
		Example: `  isthmus ca init --dir ca --trust-domain cluster.local
  isthmus ca token --dir ca --namespace shop --account web --out web.token
  isthmus ca tokens --dir ca
  isthmus ca certificates
  isthmus ca revoke --dir ca --namespace shop --account web
  isthmus ca issuer --dir ca --root-key vault/root-key.pem
  isthmus ca rotate begin --dir ca
  isthmus ca show --dir ca`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("name a command: %s init, token, tokens, certificates, revoke, issuer, rotate or show", c.CommandPath())
		},
	}
	c.AddCommand(newInit(), newToken(), newTokens(), newCertificates(), newRevoke(), newIssuer(), newRotate(), newShow())
	return c
}

// dirFlag adds the flag for the folder.
func dirFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "dir", "", "the folder of the authority")
	_ = c.MarkFlagDirname("dir")
}

// checkDir returns the error of a missing folder.
func checkDir(dir string) (found []*authority.Invalid) {
	if dir == "" {
		found = append(found, &authority.Invalid{Field: "dir", Reason: "missing; name the folder of the authority, such as /etc/isthmus/ca"})
	}
	return found
}

// usage returns the errors of all flags, or nil.
func usage(found []*authority.Invalid) error {
	var list []error
	for _, one := range found {
		list = append(list, fmt.Errorf("--%w", one))
	}
	return errors.Join(list...)
}

// warnUnlisted warns if the list of revocations is missing.
func warnUnlisted(c *cobra.Command, f *authority.Folder) {
	if warning := f.Unlisted(); warning != "" {
		warn(c, []string{warning})
	}
}

// warn prints warnings about the files on the error output.
func warn(c *cobra.Command, warnings []string) {
	for _, one := range warnings {
		term.Say(c.ErrOrStderr(), "warning: %s\n", one)
	}
}

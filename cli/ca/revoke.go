package ca

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// revocation are the flags of the command.
type revocation struct {
	dir, token, namespace, account string
	undo                           bool
}

func newRevoke() *cobra.Command {
	var r revocation
	c := &cobra.Command{
		Use:   "revoke --dir DIR (--token ID | --namespace NAMESPACE --account ACCOUNT)",
		Short: "Revoke a token, or an account with all its tokens and certificates",
		Long: `Revoke revokes one token, or a service account with all its tokens and certificates. A
running Isthmus then ends the account's streams, and accepts no new ones. A revoked token
stays revoked. --undo takes the revocation of an account back.

Revoking again is no error, and keeps the first time.

Exit status: 0 it is revoked, or taken back; 1 there is no such token or revocation, no
authority in the folder, or it cannot be written; 2 wrong usage.`,
		Example: `  isthmus ca revoke --dir /etc/isthmus/ca --token 5LDDZ2QPRJ7TDHFBNXGWGNXUQ4
  isthmus ca revoke --dir /etc/isthmus/ca --namespace shop --account web
  isthmus ca revoke --dir /etc/isthmus/ca --namespace shop --account web --undo`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			f, err := authority.OpenFolder(r.dir)
			if err != nil {
				return term.Wrong(err)
			}
			if err := r.apply(c, f); err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
	dirFlag(c, &r.dir)
	c.Flags().StringVar(&r.token, "token", "", "the id of the token to revoke, as 'isthmus ca tokens' prints it")
	accountFlags(c, &r.namespace, &r.account)
	c.Flags().BoolVar(&r.undo, "undo", false, "take the revocation of the account back")
	return c
}

// check returns the errors of all flags.
func (r *revocation) check() error {
	err := usage(checkDir(r.dir))
	switch {
	case r.token == "" && r.namespace == "" && r.account == "":
		return errors.Join(err, errors.New("nothing to revoke: name a token by --token, or an account by --namespace and --account"))
	case r.token == "":
		return errors.Join(err, usage(authority.CheckAccount(r.namespace, r.account)))
	case r.namespace != "" || r.account != "":
		err = errors.Join(err, errors.New("--token and --namespace with --account exclude each other: revoke the token, or the account with all its tokens"))
	}
	if r.undo {
		err = errors.Join(err, errors.New("--undo takes back accounts only: a revoked token stays revoked; issue another with 'isthmus ca token'"))
	}
	return err
}

// apply changes the revocations, and prints the change.
func (r *revocation) apply(c *cobra.Command, f *authority.Folder) error {
	if r.token != "" {
		one, err := f.RevokeToken(r.token, time.Now())
		if err == nil {
			term.Say(c.OutOrStdout(), "token %s: revoked since %s\n", one.ID, one.Since.Format(time.RFC3339))
		}
		return err
	}
	id, err := f.AccountID(r.namespace, r.account)
	if err != nil {
		return err
	}
	if r.undo {
		if err := f.RestoreAccount(id, time.Now()); err != nil {
			return err
		}
		term.Say(c.OutOrStdout(), "%s: no longer revoked\n", id)
		return nil
	}
	one, err := f.RevokeAccount(id, time.Now())
	if err == nil {
		term.Say(c.OutOrStdout(), "%s: revoked since %s; to take it back: isthmus ca revoke --undo --dir %s --namespace %s --account %s\n",
			one.ID, one.Since.Format(time.RFC3339), r.dir, r.namespace, r.account)
	}
	return err
}

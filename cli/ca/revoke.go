package ca

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// revocation are the flags of the command.
type revocation struct {
	dir, token, id, namespace, account string
	undo                               bool
}

func newRevoke() *cobra.Command {
	var r revocation
	c := &cobra.Command{
		Use:   "revoke --dir DIR (--token ID | --id SPIFFE-ID | --namespace NAMESPACE --account ACCOUNT)",
		Short: "Revoke a token, or an account with all its tokens and certificates",
		Long: `Revoke revokes one token, or a service account with all its tokens and certificates. A
running Isthmus then ends the account's streams, and accepts no new ones. A revoked token
stays revoked. --undo takes the revocation of an account back.

--namespace and --account name an account of the authority's own trust domain. --id names one
of any trust domain, such as that of another issuer of tokens or certificates.

Revoking again is no error, and keeps the first time. If the list of revocations is missing, a
new one is written, with a warning: it has no earlier revocations.

Exit status: 0 it is revoked, or taken back; 1 there is no such token or revocation, no
authority in the folder, or it cannot be written; 2 wrong usage.`,
		Example: `  isthmus ca revoke --dir /etc/isthmus/ca --token 5LDDZ2QPRJ7TDHFBNXGWGNXUQ4
  isthmus ca revoke --dir /etc/isthmus/ca --namespace shop --account web
  isthmus ca revoke --dir /etc/isthmus/ca --namespace shop --account web --undo
  isthmus ca revoke --dir /etc/isthmus/ca --id spiffe://other.example/ns/shop/sa/web`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			f, err := authority.OpenFolder(r.dir)
			if err != nil {
				return term.Wrong(err)
			}
			warnUnlisted(c, f)
			if err := r.apply(c, f); err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
	dirFlag(c, &r.dir)
	c.Flags().StringVar(&r.token, "token", "", "the id of the token to revoke, as 'isthmus ca tokens' prints it")
	c.Flags().StringVar(&r.id, "id", "", "the identity of the account to revoke, spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT of any trust domain")
	accountFlags(c, &r.namespace, &r.account)
	c.Flags().BoolVar(&r.undo, "undo", false, "take the revocation of the account back")
	return c
}

// check returns the errors of all flags.
func (r *revocation) check() error {
	found := checkDir(r.dir)
	byToken, byID, byNames := r.token != "", r.id != "", r.namespace != "" || r.account != ""
	var errs []error
	switch {
	case !byToken && !byID && !byNames:
		errs = append(errs, errors.New("nothing to revoke: name a token by --token, or an account by --id, or by --namespace and --account"))
	case byToken && byID, byToken && byNames, byID && byNames:
		errs = append(errs, errors.New("--token, --id, and --namespace with --account exclude each other: revoke one token, or one account with all its tokens"))
	case byID:
		if _, err := authority.ParseID(r.id); err != nil {
			found = append(found, &authority.Invalid{Field: "id", Reason: err.Error()})
		}
	case byNames:
		found = append(found, authority.CheckAccount(r.namespace, r.account)...)
	}
	if byToken && r.undo {
		errs = append(errs, errors.New("--undo takes back accounts only: a revoked token stays revoked; issue another with 'isthmus ca token'"))
	}
	return errors.Join(usage(found), errors.Join(errs...))
}

// identity returns the identity of the account, and the flags that name it.
func (r *revocation) identity(f *authority.Folder) (id spiffeid.ID, flags string, err error) {
	if r.id != "" {
		id, err = authority.ParseID(r.id)
		return id, "--id " + r.id, err
	}
	id, err = f.AccountID(r.namespace, r.account)
	return id, "--namespace " + r.namespace + " --account " + r.account, err
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
	id, flags, err := r.identity(f)
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
		term.Say(c.OutOrStdout(), "%s: revoked since %s; to take it back: isthmus ca revoke --undo --dir %s %s\n",
			one.ID, one.Since.Format(time.RFC3339), r.dir, flags)
	}
	return err
}

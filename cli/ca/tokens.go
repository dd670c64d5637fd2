package ca

import (
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// The states of a token.
const (
	valid   = "valid"
	revoked = "revoked"
)

// listedToken is a token as it is printed.
type listedToken struct {
	ID        string         `json:"id"`
	Identity  string         `json:"identity"`
	Addresses []netip.Prefix `json:"addresses"`
	Issued    time.Time      `json:"issued"`
	Expires   time.Time      `json:"expires"`
	State     string         `json:"state"`
	Since     time.Time      `json:"since,omitzero"` // when it was revoked
}

func newTokens() *cobra.Command {
	var dir string
	var format term.Format
	c := &cobra.Command{
		Use:   "tokens --dir DIR",
		Short: "List the issued tokens that have not expired",
		Long: `Tokens lists the issued tokens that have not expired, in the order in which they were
issued. A token is revoked by its id or with its account. The text of a token is stored
nowhere, and cannot be printed again.

Exit status: 0 the tokens were printed, or there are none; 1 there is no authority in the
folder, or its files cannot be read; 2 wrong usage.`,
		Example: "  isthmus ca tokens --dir /etc/isthmus/ca\n  isthmus ca tokens --dir /etc/isthmus/ca -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := usage(checkDir(dir)); err != nil {
				return err
			}
			f, err := authority.OpenFolder(dir)
			if err != nil {
				return term.Wrong(err)
			}
			warnUnlisted(c, f)
			tokens, err := f.Tokens(time.Now())
			if err != nil {
				return term.Wrong(err)
			}
			list := printable(tokens)
			return term.Print(c, format, list, func() error { return printTokens(c, list) })
		},
	}
	dirFlag(c, &dir)
	term.FormatFlag(c, &format)
	return c
}

func printable(tokens []authority.Listed) []listedToken {
	list := []listedToken{}
	for _, t := range tokens {
		one := listedToken{ID: t.ID, Identity: t.Identity, Addresses: append([]netip.Prefix{}, t.Addresses...), Issued: t.Issued, Expires: t.Expires, State: valid}
		if t.IsRevoked {
			one.State, one.Since = revoked, t.Revoked
		}
		list = append(list, one)
	}
	return list
}

func printTokens(c *cobra.Command, list []listedToken) error {
	var rows [][]string
	for _, t := range list {
		var blocks []string
		for _, block := range t.Addresses {
			blocks = append(blocks, block.String())
		}
		state := t.State
		if state == revoked {
			state += " since " + t.Since.Format(time.RFC3339)
		}
		rows = append(rows, []string{t.ID, t.Identity, term.OrDash(strings.Join(blocks, ",")), t.Issued.Format(time.RFC3339), t.Expires.Format(time.RFC3339), state})
	}
	return term.Table(c, []string{"id", "identity", "addresses", "issued", "expires", "state"}, rows)
}

package ca

import (
	"crypto/x509"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

// summary is an authority as it is printed.
type summary struct {
	Dir         string               `json:"dir"`
	TrustDomain string               `json:"trustDomain"`
	Root        rootSummary          `json:"root"`
	Issuing     *rootSummary         `json:"issuing,omitempty"` // not without an issuing certificate
	Rotation    rotationState        `json:"rotation"`
	TokenKey    keySummary           `json:"tokenKey"`
	Tokens      tokenCounts          `json:"tokens"`
	Revoked     identity.Revocations `json:"revocations"`
	Warnings    []string             `json:"warnings"`
}

// rootSummary is the root or the issuing certificate as it is printed.
type rootSummary struct {
	Fingerprint string    `json:"sha256"`
	From        time.Time `json:"validFrom"`
	Until       time.Time `json:"validUntil"`
}

type keySummary struct {
	ID string `json:"kid"`
}

// tokenCounts are the numbers of tokens that have not expired.
type tokenCounts struct {
	Valid   int `json:"valid"`
	Revoked int `json:"revoked"`
}

func newShow() *cobra.Command {
	var dir string
	var format term.Format
	c := &cobra.Command{
		Use:   "show --dir DIR",
		Short: "Show an authority, its revocations, and unsafe files",
		Long: `Show prints the trust domain, the root and the issuing certificate, the state of a rotation, the key of tokens, the number of
tokens that have not expired, and the revocations. The fingerprint is the one that 'openssl x509
-fingerprint -sha256 -in root.pem' prints. It warns on the error output of private files that
other users can read or replace, with the command that ends it, of a missing list of
revocations, and of an issuing certificate that is missing or ends.

Exit status: 0 it was printed; 1 there is no authority in the folder, or its files cannot
be read or do not belong together; 2 wrong usage.`,
		Example: "  isthmus ca show --dir /etc/isthmus/ca\n  isthmus ca show --dir /etc/isthmus/ca -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := usage(checkDir(dir)); err != nil {
				return err
			}
			s, err := summarize(dir)
			if err != nil {
				return term.Wrong(err)
			}
			warn(c, s.Warnings)
			return term.Print(c, format, s, func() error {
				printSummary(c, s)
				return nil
			})
		},
	}
	dirFlag(c, &dir)
	term.FormatFlag(c, &format)
	return c
}

// summarize reads the folder, private keys included: they have to fit.
func summarize(dir string) (s summary, err error) {
	a, err := authority.Open(dir)
	if err != nil {
		return s, err
	}
	tokens, err := a.Tokens(time.Now())
	if err != nil {
		return s, err
	}
	for _, t := range tokens {
		if t.IsRevoked {
			s.Tokens.Revoked++
		} else {
			s.Tokens.Valid++
		}
	}
	if s.Revoked, err = a.Revocations(); err != nil {
		return s, err
	}
	s.Revoked.Accounts = append([]identity.Revocation{}, s.Revoked.Accounts...)
	s.Revoked.Tokens = append([]identity.Revocation{}, s.Revoked.Tokens...)
	s.Dir, s.TrustDomain, s.TokenKey.ID, s.Warnings = dir, a.TrustDomain().Name(), a.KeyID(), append([]string{}, secretfile.Warnings(authority.Secrets(dir)...)...)
	if warning := a.Unlisted(); warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	s.Root = summaryOf(a.Root())
	if issuing := a.Issuing(); issuing != nil {
		of := summaryOf(issuing)
		s.Issuing = &of
	}
	if warning := renewal(a, time.Now()); warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	state, err := authority.RotationOf(dir)
	s.Rotation = stateOf(dir, state, time.Now())
	return s, err
}

func summaryOf(c *x509.Certificate) rootSummary {
	return rootSummary{authority.Fingerprint(c), c.NotBefore.UTC(), c.NotAfter.UTC()}
}

// renewal returns a warning if an issuing certificate is to be made.
func renewal(a *authority.Authority, now time.Time) string {
	next := "make the next one with 'isthmus ca issuer --dir " + a.Dir() + "'"
	soon, _ := a.RenewalDue(now)
	switch {
	case a.Issuing() == nil:
		return "the root signs certificates directly, so its key has to stay in the folder: make an issuing certificate with 'isthmus ca issuer --dir " + a.Dir() + "'"
	case !now.Before(a.Issuing().NotAfter):
		return "the issuing certificate has expired, and with it every certificate: " + next
	case soon:
		return "the issuing certificate expires at " + a.Issuing().NotAfter.UTC().Format(time.RFC3339) + ", and with it every certificate: " + next
	default:
		return ""
	}
}

func printSummary(c *cobra.Command, s summary) {
	out := c.OutOrStdout()
	term.Say(out, "trust domain: %s\n", s.TrustDomain)
	term.Say(out, "root: valid from %s to %s\n", s.Root.From.Format(time.RFC3339), s.Root.Until.Format(time.RFC3339))
	term.Say(out, "  SHA-256 %s\n", s.Root.Fingerprint)
	if s.Issuing != nil {
		term.Say(out, "issuing certificate: valid from %s to %s\n", s.Issuing.From.Format(time.RFC3339), s.Issuing.Until.Format(time.RFC3339))
		term.Say(out, "  SHA-256 %s\n", s.Issuing.Fingerprint)
	}
	if s.Rotation.Step != authority.StepNone {
		term.Say(out, "rotation:\n")
		for _, line := range s.Rotation.lines(s.Dir) {
			term.Say(out, "  %s\n", line)
		}
	}
	term.Say(out, "key of tokens: %s\n", s.TokenKey.ID)
	term.Say(out, "tokens: %d valid, %d revoked\n", s.Tokens.Valid, s.Tokens.Revoked)
	term.Say(out, "revocations: %s, %s\n", term.Count(len(s.Revoked.Accounts), "account"), term.Count(len(s.Revoked.Tokens), "token"))
	for _, account := range s.Revoked.Accounts {
		term.Say(out, "  %s since %s\n", account.ID, account.Since.Format(time.RFC3339))
	}
}

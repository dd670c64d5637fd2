package ca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli/inspect"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/plain"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// The steps of the command.
const (
	stepBegin  = "begin"
	stepSign   = "sign"
	stepFinish = "finish"
)

// rotation are the flags of the command.
type rotation struct {
	dir    string
	admins []string
	access inspect.Flags
}

func newRotate() *cobra.Command {
	var r rotation
	c := &cobra.Command{
		Use:   "rotate (begin | sign | finish) --dir DIR [--admin ADDRESS]...",
		Short: "Replace the root in three steps, without a failed call",
		Long: `Rotate replaces the root of an authority while it is in use. Each step is a command:

  begin    makes the next root. Every Isthmus with the folder has its clients trust it
           beside the old one, within a second and without a restart.
  sign     lets the next root sign. It asks each Isthmus given by --admin, and needs every
           connected client to have accepted the next root. The others are listed by their accounts: end
the streams of an account that is not your workload with 'isthmus ca revoke'.
  finish   ends the trust in the old root. It needs the last certificate of the old root to
           have expired.

A step that may not be taken yet says what it waits for, and changes nothing. A step that is
already taken changes nothing either. If a command was interrupted, run it again.

Begin and sign need root-key.pem in the folder: put it back if it was moved away.

Name every Isthmus by --admin that serves certificates of this authority. A copy of the
folder on another machine needs to be replaced after each step.

'isthmus ca show' prints the state of the rotation, and the next step.

Exit status: 0 the step is taken; 1 it may not be taken yet, or the folder or an Isthmus
cannot be used; 2 wrong usage.`,
		Example: `  isthmus ca rotate begin --dir /etc/isthmus/ca
  isthmus ca rotate sign --dir /etc/isthmus/ca --admin 127.0.0.1:8080
  isthmus ca rotate finish --dir /etc/isthmus/ca --admin 127.0.0.1:8080`,
		ValidArgs: []string{stepBegin, stepSign, stepFinish},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains([]string{stepBegin, stepSign, stepFinish}, args[0]) {
				return errors.New("name one step: begin, sign or finish; 'isthmus ca show' prints the next one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.check(args[0]); err != nil {
				return err
			}
			steps := map[string]func(*cobra.Command) error{stepBegin: r.begin, stepSign: r.sign, stepFinish: r.finish}
			if err := steps[args[0]](c); err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
	dirFlag(c, &r.dir)
	c.Flags().StringSliceVar(&r.admins, "admin", nil, "where the admin API of an Isthmus with this authority is: a URL, or a host and port; name each one, by repeating the flag")
	r.access.AddAccess(c)
	return c
}

// check returns the errors of all flags.
func (r *rotation) check(step string) error {
	found := checkDir(r.dir)
	if step != stepBegin && len(r.admins) == 0 {
		found = append(found, &authority.Invalid{Field: "admin", Reason: "missing; name the admin API of each Isthmus that serves certificates of this authority, such as 127.0.0.1:8080"})
	}
	return usage(found)
}

func (r *rotation) begin(c *cobra.Command) error {
	state, err := authority.BeginRotation(r.dir, time.Now())
	if err != nil {
		return err
	}
	r.print(c, state)
	return nil
}

// sign moves signing to the next root if that has not happened yet. It is done once every
// Isthmus signs with it.
func (r *rotation) sign(c *cobra.Command) error {
	state, err := authority.RotationOf(r.dir)
	if err != nil {
		return err
	}
	if state.Step == authority.StepNone {
		return fmt.Errorf("no rotation has begun: begin one with 'isthmus ca rotate begin --dir %s'", r.dir)
	}
	name, longest := authority.Fingerprint(state.Root), time.Duration(0)
	if state.Step == authority.StepBegun {
		name = authority.Fingerprint(state.Other)
		if longest, err = r.each(c.Context(), func(a admin.Authority) error { return r.trusts(a, name) }); err != nil {
			return err
		}
	}
	if state, err = authority.MoveSigning(r.dir, name, time.Now()); err != nil {
		return err
	}
	after, err := r.each(c.Context(), func(a admin.Authority) error { return signs(a, name) })
	if err != nil {
		return fmt.Errorf("the new root signs in %s, but not everywhere:\n%w\nonce each Isthmus has this folder, repeat the command", r.dir, err)
	}
	if state, err = authority.ConfirmSigning(r.dir, name, max(longest, after), time.Now()); err != nil {
		return err
	}
	r.print(c, state)
	return nil
}

// finish ends the trust in the old root if every Isthmus signs with the new one.
func (r *rotation) finish(c *cobra.Command) error {
	state, err := authority.RotationOf(r.dir)
	if err != nil {
		return err
	}
	if state.Step == authority.StepMoved {
		if _, err := r.eachOnce(c.Context(), func(a admin.Authority) error { return signs(a, authority.Fingerprint(state.Root)) }); err != nil {
			return err
		}
	}
	if state, err = authority.FinishRotation(r.dir, time.Now()); err != nil {
		return err
	}
	r.print(c, state)
	return nil
}

// pickUp is for how long each Isthmus may take to look at the folder.
const pickUp = 5 * time.Second

// each asks each Isthmus until none has a reason against it, for a while.
func (r *rotation) each(ctx context.Context, against func(admin.Authority) error) (longest time.Duration, err error) {
	for end := time.Now().Add(pickUp); ; {
		if longest, err = r.eachOnce(ctx, against); err == nil || time.Now().After(end) || !wait.Sleep(ctx, 200*time.Millisecond) {
			return longest, err
		}
	}
}

// eachOnce asks each Isthmus. It returns the reasons against it, and the longest validity of
// their certificates.
func (r *rotation) eachOnce(ctx context.Context, against func(admin.Authority) error) (longest time.Duration, err error) {
	var reasons []error
	for _, at := range r.admins {
		var a admin.Authority
		err := r.access.At(at).Get(ctx, "/api/v1/authority", &a)
		if err == nil {
			err = against(a)
		}
		ttl, unknown := time.ParseDuration(a.TTL)
		if err == nil {
			err = unknown
		}
		if err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", at, err))
		}
		longest = max(longest, ttl)
	}
	return longest, errors.Join(reasons...)
}

// trusts returns why not every client of an Isthmus trusts a root. The clients are listed by
// account: a client names itself, and may do so in many ways, but proves its account.
func (r *rotation) trusts(a admin.Authority, root string) error {
	if !slices.Contains(a.Roots, root) {
		return fmt.Errorf("it does not serve the next root%s", stale(a))
	}
	if a.Clients.ACKed == a.Clients.Asking {
		return nil
	}
	var list strings.Builder
	behind := a.Clients.Asking - a.Clients.ACKed
	others := behind
	for _, one := range a.Clients.Behind {
		list.WriteString("\n  " + r.account(one, a.TrustDomain))
		others -= one.Streams
	}
	if others > 0 {
		fmt.Fprintf(&list, "\n  and %d clients of other accounts", others)
	}
	return fmt.Errorf("%d of %d clients have not accepted the next root:%s\nwait, or look at them with 'isthmus clients ID', and restart or stop them; revoke accounts that are not your workloads",
		behind, a.Clients.Asking, list.String())
}

// account describes an account with clients that have not accepted a root, with the command that
// ends its streams.
func (r *rotation) account(one admin.AuthorityClient, domain string) string {
	text := one.Identity + ": "
	if one.Streams > 1 {
		text += fmt.Sprintf("%d streams, such as ", one.Streams)
	}
	text += one.ID + " (" + one.State
	if one.Reason != "" {
		text += ": " + one.Reason
	}
	text = plain.Text(text + ")")
	id, err := spiffeid.FromString(one.Identity)
	if err != nil || id.TrustDomain().Name() != domain {
		return text
	}
	if namespace, account, err := spiffe.Parts(id); err == nil && spiffe.IsAccount(account) {
		text += fmt.Sprintf("\n    to end them: isthmus ca revoke --dir %s --namespace %s --account %s", r.dir, namespace, account)
	}
	return text
}

// signs returns why an Isthmus does not sign with a root.
func signs(a admin.Authority, root string) error {
	if a.Signing != root {
		return fmt.Errorf("it signs with another root, %s%s", a.Signing, stale(a))
	}
	return nil
}

// stale is the reason of an Isthmus without the state of the folder.
func stale(a admin.Authority) string {
	if a.Problem != "" {
		return "; it cannot read its folder: " + a.Problem
	}
	return ": its folder is another one, or an older copy; replace it by this one, and repeat the command after a few seconds"
}

// print prints the state, with the next step.
func (r *rotation) print(c *cobra.Command, state authority.Rotation) {
	for _, line := range stateOf(r.dir, state, time.Now()).lines(r.dir) {
		term.Say(c.OutOrStdout(), "%s\n", line)
	}
}

// rotationState is the state of a rotation as it is printed.
type rotationState struct {
	Step  authority.Step `json:"step"`
	Since time.Time      `json:"since,omitzero"`
	Other string         `json:"otherRoot,omitempty"` // the SHA-256 fingerprint of the root beside the one that signs
	Next  string         `json:"next,omitempty"`      // the command of the next step
	Waits string         `json:"waitsFor,omitempty"`  // when it may be taken
	Due   time.Time      `json:"due,omitzero"`        // the time, if it is one
}

func stateOf(dir string, r authority.Rotation, now time.Time) rotationState {
	s := rotationState{Step: r.Step, Since: r.Since.UTC()}
	command := "isthmus ca rotate %s --dir " + dir + " --admin ADDRESS"
	if r.Other != nil {
		s.Other = authority.Fingerprint(r.Other)
	}
	switch {
	case r.Step == authority.StepBegun:
		s.Next, s.Waits = fmt.Sprintf(command, stepSign), "every connected client to accept the next root"
	case r.Step == authority.StepMoved && r.Due.IsZero():
		s.Next, s.Waits = fmt.Sprintf(command, stepSign), "every Isthmus to sign with the new root"
	case r.Step == authority.StepMoved:
		s.Next, s.Due = fmt.Sprintf(command, stepFinish), r.Due.UTC()
		if now.Before(r.Due) {
			s.Waits = "the certificates of the old root to expire, until " + s.Due.Format(time.RFC3339)
		}
	}
	return s
}

// lines are the state in words.
func (s rotationState) lines(dir string) (lines []string) {
	since := ""
	if !s.Since.IsZero() {
		since = " since " + s.Since.Format(time.RFC3339)
	}
	switch s.Step {
	case authority.StepBegun:
		lines = append(lines, fmt.Sprintf("the next root is trusted%s, and signs nothing yet", since))
	case authority.StepMoved:
		lines = append(lines, fmt.Sprintf("the new root signs%s; the one before is still trusted", since))
	default:
		return []string{fmt.Sprintf("one root is trusted, that of %s; give it to whoever has the one before", dir)}
	}
	lines = append(lines, "  SHA-256 of the other root "+s.Other)
	if s.Waits != "" {
		lines = append(lines, "  waits for "+s.Waits)
	}
	return append(lines, "  next: "+s.Next)
}

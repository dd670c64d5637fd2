package identity

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// claims are the claims of a token by their exact names.
type claims map[string]json.RawMessage

// text returns a required claim.
func (c claims) text(name string) (string, error) {
	value, err := c.optional(name)
	if err == nil && value == "" {
		err = fmt.Errorf("the claim %s is missing", name)
	}
	return value, err
}

// optional returns a claim; empty if it is missing.
func (c claims) optional(name string) (value string, err error) {
	raw, ok := c[name]
	if !ok {
		return "", nil
	}
	if !isText(raw) || json.Unmarshal(raw, &value) != nil {
		return "", fmt.Errorf("the claim %s is not a string", name)
	}
	return value, nil
}

// isText tells a string from null, which would be read as an empty one.
func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// texts returns a claim that is a string or a list of strings.
func (c claims) texts(name string) (values []string, err error) {
	raw := c[name]
	if isText(raw) {
		value, err := c.optional(name)
		return []string{value}, err
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, fmt.Errorf("the claim %s is not a string or a list of strings", name)
	}
	for _, one := range list {
		var value string
		if !isText(one) || json.Unmarshal(one, &value) != nil {
			return nil, fmt.Errorf("the claim %s is not a string or a list of strings", name)
		}
		values = append(values, value)
	}
	return values, nil
}

func (c claims) hasAudience(want string) error {
	if _, ok := c["aud"]; !ok {
		return fmt.Errorf("the claim aud is missing; request a token for the audience %q", want)
	}
	audiences, err := c.texts("aud")
	if err == nil && !slices.Contains(audiences, want) {
		err = fmt.Errorf("it is for another audience; request a token for the audience %q", want)
	}
	return err
}

// leeway is the tolerated difference of clocks for the claims nbf and iat.
const leeway = time.Minute

// validAt returns the end of a token, if the token is valid at a time.
func (c claims) validAt(now time.Time) (expires time.Time, err error) {
	if _, ok := c["exp"]; !ok {
		return expires, errors.New("the claim exp is missing; a token must expire")
	}
	if expires, err = c.time("exp"); err != nil {
		return expires, err
	}
	if !now.Before(expires) {
		return expires, fmt.Errorf("it expired at %s; connect with a new one", expires.UTC().Format(time.RFC3339))
	}
	for _, name := range []string{"nbf", "iat"} {
		if _, ok := c[name]; !ok {
			continue
		}
		begin, err := c.time(name)
		if err != nil {
			return expires, err
		}
		if begin.After(now.Add(leeway)) {
			return expires, fmt.Errorf("it is not valid before %s (%s); compare the clocks", begin.UTC().Format(time.RFC3339), name)
		}
	}
	return expires, nil
}

// lastSecond is the last second of the year 9999.
const lastSecond = 253402300799

// time returns a claim in seconds since 1970.
func (c claims) time(name string) (time.Time, error) {
	var seconds *float64
	if json.Unmarshal(c[name], &seconds) != nil || seconds == nil || *seconds < 0 || *seconds > lastSecond {
		return time.Time{}, fmt.Errorf("the claim %s is not a time in seconds since 1970", name)
	}
	whole, part := math.Modf(*seconds)
	return time.Unix(int64(whole), int64(part*float64(time.Second))), nil
}

// hasPeer returns why a client may not use the token from its address. The claim address,
// a block of addresses or a list of them, narrows the use of a token.
func (c claims) hasPeer(peer netip.Addr) error {
	if _, ok := c["address"]; !ok {
		return nil
	}
	blocks, err := c.texts("address")
	if err != nil {
		return err
	}
	if !peer.IsValid() {
		return errors.New("it may be used from some addresses only (claim address), and this connection has none")
	}
	at, within := peer.Unmap().WithZone(""), false
	for _, text := range blocks {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("the claim address has %s, which is not a block such as 10.1.2.3/32", clip(text))
		}
		within = within || block.Contains(at)
	}
	if !within {
		return fmt.Errorf("it may not be used from the address %s (claim address)", at)
	}
	return nil
}

const kubernetesSubject = "system:serviceaccount:"

// identity returns the identity in verified claims, if the issuer may vouch for it.
func (i *issuer) identity(c claims) (id spiffeid.ID, who workload, err error) {
	if i.Claims.Namespace != "" {
		who.trustDomain = i.TrustDomain
		if who.namespace, err = c.text(i.Claims.Namespace); err == nil {
			who.account, err = c.text(i.Claims.Account)
		}
	} else {
		who, err = i.subject(c)
	}
	if err == nil {
		id, err = who.makeID()
	}
	if err == nil {
		err = i.mayVouch(who)
	}
	return id, who, err
}

// subject reads the claim sub.
func (i *issuer) subject(c claims) (workload, error) {
	sub, err := c.text("sub")
	if err != nil {
		return workload{}, err
	}
	if account, ok := strings.CutPrefix(sub, kubernetesSubject); ok && !i.authority {
		namespace, account, _ := strings.Cut(account, ":")
		return workload{i.TrustDomain, namespace, account}, nil
	}
	who, err := parseID(sub)
	if err != nil {
		err = fmt.Errorf("claim sub: %w", err)
	}
	return who, err
}

package authority_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
)

// stolen are the issuing certificates of a folder with their keys.
type stolen struct {
	certs []*x509.Certificate // of workloads, of servers
	keys  []*ecdsa.PrivateKey
}

func steal(t *testing.T, dir string) (s stolen) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "issuer.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return s
		}
		text = rest
		if block.Type == "CERTIFICATE" {
			s.certs = append(s.certs, certificates(t, pem.EncodeToMemory(block))...)
			continue
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		s.keys = append(s.keys, key.(*ecdsa.PrivateKey))
	}
}

// sign has a thief sign a certificate, and returns its chain and key.
func (s stolen) sign(t *testing.T, by int, template *x509.Certificate) ([]*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter, template.KeyUsage = s.certs[by].NotBefore, s.certs[by].NotAfter, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, s.certs[by], key.Public(), s.keys[by])
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{leaf, s.certs[by]}, key
}

// What a thief of the issuing keys signs beyond their purpose is rejected, also by OpenSSL. Go admits
// subdomains of the trust domain; these are another trust domain, and give no right of ours.
func TestIssuingCertificatesAreConstrained(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	s := steal(t, dir)
	for _, c := range s.certs {
		if !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero || !c.PermittedDNSDomainsCritical || c.KeyUsage != x509.KeyUsageCertSign {
			t.Errorf("%s: path length %d, usages %b", c.Subject, c.MaxPathLen, c.KeyUsage)
		}
		if got := c.NotAfter.Sub(begin()); got > authority.LongestIssuing || got < authority.LongestIssuing-time.Minute {
			t.Errorf("%s is valid for %s", c.Subject, got)
		}
		if c.Subject.String() == a.Root().Subject.String() {
			t.Error("it has the name of the root")
		}
	}
	uri := func(text string) *x509.Certificate {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return &x509.Certificate{URIs: []*url.URL{u}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	}
	program, missing := exec.LookPath("openssl")
	const workloads, servers = 0, 1
	const client, server = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	dns, mail, ip, ip6 := uri(web), uri(web), uri(web), uri(web)
	dns.DNSNames, mail.EmailAddresses = []string{"web.example.com"}, []string{"a@example.com"}
	ip.IPAddresses, ip6.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)}, []net.IP{net.IPv6loopback}
	plain := &x509.Certificate{DNSNames: []string{"web.example.com"}, IPAddresses: []net.IP{net.IPv6loopback, net.IPv4(10, 0, 0, 1)}}
	for name, test := range map[string]struct {
		by       int
		template *x509.Certificate
		usage    x509.ExtKeyUsage
		valid    bool
	}{
		"a workload":                      {workloads, uri(web), client, true},
		"a workload, as a server":         {workloads, uri(web), server, true},
		"a subdomain":                     {workloads, uri("spiffe://a.cluster.local/ns/shop/sa/web"), client, true},
		"a foreign domain":                {workloads, uri("spiffe://other.example/ns/shop/sa/web"), client, false},
		"a domain with the same end":      {workloads, uri("spiffe://notcluster.local/ns/shop/sa/web"), client, false},
		"a DNS name":                      {workloads, dns, server, false},
		"an IP address":                   {workloads, ip, server, false},
		"an IPv6 address":                 {workloads, ip6, server, false},
		"an e-mail address":               {workloads, mail, client, false},
		"a listener":                      {servers, plain, server, true},
		"a listener, as a client":         {servers, plain, client, false},
		"a listener with an identity":     {servers, uri(web), server, false},
		"a listener with e-mail":          {servers, &x509.Certificate{EmailAddresses: []string{"a@example.com"}}, server, false},
		"a listener of workloads' issuer": {workloads, plain, server, false},
	} {
		chain, _ := s.sign(t, test.by, test.template)
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: rootOf(a), Intermediates: between(chain), KeyUsages: []x509.ExtKeyUsage{test.usage}})
		if (err == nil) != test.valid {
			t.Errorf("%s: %v", name, err)
		}
		if missing != nil {
			continue
		}
		if out, err := openssl(t, program, a.Root(), chain, test.usage); (err == nil) != (test.valid && name != "a subdomain") {
			t.Errorf("%s, by OpenSSL: %v %s", name, err, out)
		}
	}
	sub := uri("spiffe://a.cluster.local/ns/istio-system/sa/web")
	chain, _ := s.sign(t, workloads, sub)
	chain[0].KeyUsage = x509.KeyUsageDigitalSignature
	v, err := identity.New(identity.Config{
		TrustDomain: "cluster.local", TrustDomains: map[string]identity.TrustDomain{"other.example": {}}, Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL},
	}, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Prove(t.Context(), identity.Evidence{Chains: [][]*x509.Certificate{chain}, Secure: true})
	if err != nil || p.ID != sub.URIs[0].String() {
		t.Errorf("a subdomain proves %+v: %v", p, err)
	}
	if r, err := v.Admit(p, identity.Demands{}, ""); err != nil || r.Everything() == nil || r.Certified() {
		t.Errorf("a subdomain has the rights %+v: %v", r, err)
	}
	if _, err := a.Sign("spiffe://a.cluster.local/ns/shop/sa/web", publicKey(t, elliptic.P256()), time.Now(), time.Hour); err == nil {
		t.Error("we sign for a subdomain")
	}
	// Path length 0: no further authority.
	child, key := s.sign(t, workloads, &x509.Certificate{IsCA: true, BasicConstraintsValid: true})
	leaf, _ := stolen{child, []*ecdsa.PrivateKey{key}}.sign(t, 0, uri(web))
	if verify(append(leaf, s.certs[0]), time.Now(), a.Root()) == nil {
		t.Error("an authority of the issuing certificate is accepted")
	}
}

// openssl verifies a chain by OpenSSL.
func openssl(t *testing.T, program string, root *x509.Certificate, chain []*x509.Certificate, usage x509.ExtKeyUsage) ([]byte, error) {
	t.Helper()
	file := func(c *x509.Certificate) string {
		path := filepath.Join(t.TempDir(), "cert.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	purpose := "sslclient"
	if usage == x509.ExtKeyUsageServerAuth {
		purpose = "sslserver"
	}
	return exec.CommandContext(t.Context(), program, "verify", "-purpose", purpose, "-CAfile", file(root), "-untrusted", file(chain[1]), file(chain[0])).CombinedOutput()
}

// Each command on each state of a folder works, or names the step that helps and changes nothing.
func TestCommandsWorkOnEachStateOfAFolder(t *testing.T) {
	t.Parallel()
	_, strange := create(t)
	foreign := content(t, strange)
	remove := func(t *testing.T, dir, name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := begin().Add(3 * time.Hour)
	commands := map[string]func(dir, key string) error{
		"open": func(dir, _ string) error { _, err := authority.Open(dir); return err },
		"sign": func(dir, _ string) error {
			a, err := authority.Open(dir)
			if err != nil {
				return err
			}
			key, err := newKey(elliptic.P256())
			if err != nil {
				return err
			}
			chain, err := a.Sign(web, key, now, time.Hour)
			if err == nil {
				err = verify(certificates(t, append(chain, a.Cross()...)), now, a.Roots()...)
			}
			return err
		},
		"issuer": func(dir, _ string) error {
			_, err := authority.RenewIssuing(dir, "", authority.LongestIssuing, now)
			return err
		},
		"issuer --root-key": func(dir, key string) error {
			_, err := authority.RenewIssuing(dir, key, authority.LongestIssuing, now)
			return err
		},
		"rotate begin": func(dir, _ string) error { _, err := authority.BeginRotation(dir, now); return err },
		"rotate sign": func(dir, _ string) error {
			state, err := authority.RotationOf(dir)
			if err == nil && state.Step == authority.StepMoved {
				state.Other = state.Root
			}
			if err == nil && state.Other != nil {
				_, err = authority.MoveSigning(dir, authority.Fingerprint(state.Other), now)
			}
			return err
		},
		"init": func(dir, _ string) error { _, err := authority.Create(dir, domain(t), now); return err },
	}
	const fine, there = "", "has an authority already"
	const noKey, unusable, putBack = "root-key.pem cannot be read: no such file or directory; name its file with --root-key", "isthmus ca issuer --dir ", "put the key back"
	for name, test := range map[string]struct {
		make func(t *testing.T, dir string)
		want map[string]string
	}{
		"whole":                 {func(*testing.T, string) {}, map[string]string{"init": there}},
		"of an earlier version": {func(t *testing.T, dir string) { remove(t, dir, "issuer.pem") }, map[string]string{"init": there}},
		"root key away": {func(t *testing.T, dir string) { remove(t, dir, "root-key.pem") }, map[string]string{
			"issuer": noKey, "rotate begin": putBack, "init": there,
		}},
		"root key behind a link to nothing": {func(t *testing.T, dir string) {
			remove(t, dir, "root-key.pem")
			if err := os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "root-key.pem")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"issuer": noKey, "rotate begin": putBack, "init": there}},
		"root key away during a rotation": {func(t *testing.T, dir string) {
			if _, err := authority.BeginRotation(dir, now); err != nil {
				t.Fatal(err)
			}
			remove(t, dir, "root-key.pem")
		}, map[string]string{"issuer": noKey, "rotate sign": putBack, "init": there}},
		"no key at all": {func(t *testing.T, dir string) { remove(t, dir, "root-key.pem"); remove(t, dir, "issuer.pem") }, map[string]string{
			"open": "root-key.pem is missing: restore it", "sign": "root-key.pem is missing", "issuer": noKey, "rotate begin": "root-key.pem is missing", "init": there,
		}},
		"a damaged issuer": {func(t *testing.T, dir string) { write(t, dir, "issuer.pem", "text") }, map[string]string{
			"open": unusable, "sign": unusable, "init": there,
		}},
		"the issuer of another authority": {func(t *testing.T, dir string) { write(t, dir, "issuer.pem", foreign["issuer.pem"]) }, map[string]string{
			"open": unusable, "sign": unusable, "init": there,
		}},
		"an expired issuer": {func(t *testing.T, dir string) {
			if _, err := authority.RenewIssuing(dir, "", time.Hour, now.Add(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"sign": unusable, "init": there}},
		"rotation begun": {func(t *testing.T, dir string) {
			if _, err := authority.BeginRotation(dir, now); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"init": there}},
		"the issuer of the old root while the new one signs": {func(t *testing.T, dir string) {
			before := content(t, dir)["issuer.pem"]
			state, err := authority.BeginRotation(dir, now)
			if err == nil {
				_, err = authority.MoveSigning(dir, authority.Fingerprint(state.Other), now)
			}
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "issuer.pem", before)
			if _, err := authority.ConfirmSigning(dir, authority.Fingerprint(state.Other), longest, now); err == nil {
				t.Error("it is confirmed that the new root signs")
			}
			if a, err := authority.Open(dir); err != nil || !a.Root().Equal(state.Root) {
				t.Errorf("the old root does not sign: %v", err)
			}
		}, map[string]string{"init": there}},
	} {
		for command, run := range commands {
			_, dir := create(t)
			key := filepath.Join(t.TempDir(), "key.pem")
			text := content(t, dir)["root-key.pem"]
			test.make(t, dir)
			if is := content(t, dir)["root-key.pem"]; is != "" {
				text = is
			}
			write(t, filepath.Dir(key), "key.pem", text)
			before := content(t, dir)
			err, want := run(dir, key), test.want[command]
			if want == fine {
				if err == nil && command != "open" {
					err = commands["sign"](dir, key)
				}
				if err != nil && !(command != "issuer" && command != "issuer --root-key" && strings.Contains(err.Error(), test.want["sign"]) && test.want["sign"] != "") {
					t.Errorf("%s: %s: %v", name, command, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v; want %q", name, command, err, want)
			}
			for file, text := range content(t, dir) {
				if before[file] != text {
					t.Errorf("%s: %s changes %s", name, command, file)
				}
			}
		}
	}
}

// A wrong key of the root, and a write that fails, leave the issuing certificate in use.
func TestAnIssuingCertificateIsReplacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	_, strange := create(t)
	half := filepath.Join(dir, ".issuer.pem.new", "full")
	for name, test := range map[string]struct {
		key  string
		ttl  time.Duration
		make func() error
		want string
	}{
		"the key of another root": {filepath.Join(strange, "root-key.pem"), time.Hour, func() error { return nil }, "is not the key of " + filepath.Join(dir, "root.pem")},
		"no key":                  {filepath.Join(dir, "root.pem"), time.Hour, func() error { return nil }, "is not a private key"},
		"too long":                {"", authority.LongestIssuing + 1, func() error { return nil }, "issuing certificates are valid from"},
		"a failed write":          {"", time.Hour, func() error { return os.MkdirAll(half, 0o700) }, "issuer.pem cannot be written, and is unchanged"},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		if _, err := authority.RenewIssuing(dir, test.key, test.ttl, begin()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.RemoveAll(filepath.Dir(half)); err != nil {
			t.Fatal(err)
		}
		if now, err := authority.Open(dir); err != nil || !now.Issuing().Equal(a.Issuing()) {
			t.Errorf("%s: another issuing certificate signs: %v", name, err)
		}
	}
	next, err := authority.RenewIssuing(dir, "", time.Hour, begin())
	if err != nil || next.Issuing().Equal(a.Issuing()) || next.Issuing().PublicKey.(*ecdsa.PublicKey).Equal(a.Issuing().PublicKey) {
		t.Errorf("the next one has the same key: %v", err)
	}
}

// The next issuing certificate replaces no leaf, and versions stay, but for leaves that end early with the
// issuing certificate before.
func TestALeafStaysUnlessItEndsWithItsIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, dir := create(t)
		i, _ := follow(t, dir)
		renew := func(ttl time.Duration) {
			t.Helper()
			changed := i.Changed()
			if _, err := authority.RenewIssuing(dir, "", ttl, time.Now()); err != nil {
				t.Fatal(err)
			}
			<-changed
		}
		bundle, first, signer := i.Bundle(), leafOf(t, i), i.Signer()
		renew(authority.LongestIssuing)
		second := leafOf(t, i)
		if !i.Current(first) || first.Generation != second.Generation || i.Bundle() != bundle {
			t.Error("a leaf, its version or the bundle did not stay")
		}
		if i.Signer() == signer {
			t.Error("listeners keep the certificates of the issuer before")
		}
		for _, leaf := range [][]byte{first.Chain, second.Chain} {
			if err := verify(certificates(t, leaf), time.Now(), i.Authority().Root()); err != nil {
				t.Error(err)
			}
		}
		renew(2 * time.Hour) // less than the rest of the window
		short := leafOf(t, i)
		if end := certificates(t, short.Chain)[0].NotAfter; !end.Equal(i.Authority().Issuing().NotAfter) || !i.Current(short) || !i.Current(first) || short.Generation == first.Generation {
			t.Errorf("it ends at %s", end)
		}
		renew(authority.LongestIssuing)
		if i.Current(short) || !i.Current(first) || leafOf(t, i).Generation != first.Generation {
			t.Error("a leaf that ends early stays")
		}
		renew(2 * time.Hour)
		time.Sleep(3 * time.Hour) // in the window that began before the end
		if leaf, err := i.Issue(web, time.Now()); err == nil || !strings.Contains(err.Error(), "the issuing certificate expired at") {
			t.Errorf("an expired certificate is issued: %v, %v", leaf, err)
		}
	})
}

// It is time for the next issuing certificate well before the end.
func TestARenewalIsDueInTime(t *testing.T) {
	t.Parallel()
	_, dir := create(t)
	const day = 24 * time.Hour
	for ttl, test := range map[time.Duration]struct{ soon, atOnce time.Duration }{
		90 * day:  {30 * day, 7 * day},
		12 * day:  {4 * day, day},
		time.Hour: {20 * time.Minute, 5 * time.Minute},
	} {
		a, err := authority.RenewIssuing(dir, "", ttl, begin())
		if err != nil {
			t.Fatal(err)
		}
		const about = time.Minute
		for left, want := range map[time.Duration][2]bool{
			ttl: {false, false}, test.soon + about: {false, false}, test.soon - about: {true, false}, test.atOnce + about: {true, false}, test.atOnce - about: {true, true}, -day: {true, true},
		} {
			if soon, atOnce := a.RenewalDue(a.Issuing().NotAfter.Add(-left)); soon != want[0] || atOnce != want[1] {
				t.Errorf("of %s, %s are left: %t, %t", ttl, left, soon, atOnce)
			}
		}
	}
	if soon, atOnce := earlier(t, dir).RenewalDue(time.Now()); soon || atOnce {
		t.Error("a folder of an earlier version is to be renewed")
	}
}

// A root key that this process may not read is as one that was moved away. Root reads all.
func TestAnUnreadableRootKeyIsNotNeeded(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads all files")
	}
	_, dir := create(t)
	chmod(t, filepath.Join(dir, "root-key.pem"), 0)
	if _, err := authority.Open(dir); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "issuer.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(dir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("without an issuing certificate: %v", err)
	}
}

// A trust domain may have any name that SPIFFE takes, also one that no constraint can have.
func TestOddTrustDomainsHaveIssuingCertificates(t *testing.T) {
	t.Parallel()
	for name, constraint := range map[string][]string{
		"cluster.local": {"cluster.local"}, "a-b.c2": {"a-b.c2"}, "my_domain": nil, "prod.1": nil, "a-.b": nil, "prod.3com": nil,
	} {
		domain, err := authority.TrustDomain(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := authority.Create(filepath.Join(t.TempDir(), "ca"), domain, begin())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := a.Sign("spiffe://"+name+"/ns/shop/sa/web", publicKey(t, elliptic.P256()), begin(), time.Hour)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		chain := certificates(t, text)
		if err := verify(chain, begin(), a.Root()); err != nil || !slices.Equal(chain[1].PermittedURIDomains, constraint) {
			t.Errorf("%s: %v, constraint %q", name, err, chain[1].PermittedURIDomains)
		}
	}
}

// A clock that is wrong replaces no issuing certificate by one that has ended, and one that is not valid yet
// is not used.
func TestWrongClocksReplaceNoIssuer(t *testing.T) {
	t.Parallel()
	_, dir := create(t)
	i, _ := follow(t, dir)
	before := content(t, dir)["issuer.pem"]
	if _, err := authority.RenewIssuing(dir, "", authority.LongestIssuing, begin().AddDate(-2, 0, 0)); err == nil || !strings.Contains(err.Error(), "correct the clock") || content(t, dir)["issuer.pem"] != before {
		t.Errorf("two years back: %v", err)
	}
	first := leafOf(t, i)
	if _, err := authority.RenewIssuing(dir, "", authority.LongestIssuing, begin().AddDate(0, 0, 2)); err != nil {
		t.Fatal(err)
	}
	await(t, "a fault", func() bool { return i.Fault() != nil && strings.Contains(i.Fault().Err.Error(), "not valid before") })
	if chain := certificates(t, leafOf(t, i).Chain); !chain[1].Equal(certificates(t, first.Chain)[1]) {
		t.Error("a certificate that is not valid yet signs")
	}
}

// Without its root, a finished authority is not made anew, and nothing is written.
func TestALostRootIsRestored(t *testing.T) {
	t.Parallel()
	_, dir := create(t)
	for _, name := range []string{"root-key.pem", "root.pem"} { // the key was moved away
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := content(t, dir)
	_, opened := authority.Open(dir)
	_, created := authority.Create(dir, domain(t), begin())
	for _, err := range []error{opened, created} {
		if err == nil || !strings.Contains(err.Error(), "root.pem is missing: restore it from your backup") {
			t.Errorf("%v", err)
		}
	}
	if after := content(t, dir); !maps.Equal(before, after) {
		t.Error("the folder was changed")
	}
}

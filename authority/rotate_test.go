package authority_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/authority"
)

// rotated takes steps of a rotation, each a minute after the one before.
type rotated struct {
	t   *testing.T
	dir string
	now time.Time
}

func newRotated(t *testing.T) *rotated {
	t.Helper()
	_, dir := create(t)
	return &rotated{t, dir, begin().Add(time.Minute)}
}

func (r *rotated) must(state authority.Rotation, err error) authority.Rotation {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	return state
}

func (r *rotated) begin() authority.Rotation {
	r.t.Helper()
	return r.must(authority.BeginRotation(r.dir, r.now))
}

func (r *rotated) move() authority.Rotation {
	r.t.Helper()
	return r.must(authority.MoveSigning(r.dir, authority.Fingerprint(r.state().Other), r.now))
}

func (r *rotated) confirm() authority.Rotation {
	r.t.Helper()
	return r.must(authority.ConfirmSigning(r.dir, authority.Fingerprint(r.state().Root), longest, r.now))
}

func (r *rotated) finish() authority.Rotation {
	r.t.Helper()
	r.now = r.now.Add(longest)
	return r.must(authority.FinishRotation(r.dir, r.now))
}

func (r *rotated) state() authority.Rotation {
	r.t.Helper()
	state, err := authority.RotationOf(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

// longest is the validity of certificates in these tests.
const longest = 24 * time.Hour

// certificates parses PEM.
func certificates(t interface {
	Helper()
	Fatal(args ...any)
}, text []byte,
) (list []*x509.Certificate) {
	t.Helper()
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return list
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		list, text = append(list, c), rest
	}
}

// verify verifies a chain as a client does that trusts some roots.
func verify(chain []*x509.Certificate, at time.Time, trusted ...*x509.Certificate) error {
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: at}
	for _, root := range trusted {
		o.Roots.AddCert(root)
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(o)
	return err
}

func TestARotationIsThreeSteps(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	old := r.state()
	if old.Step != authority.StepNone || old.Other != nil {
		t.Errorf("a new authority is in %+v", old)
	}
	at := r.now
	begun := r.begin()
	if begun.Step != authority.StepBegun || !begun.Root.Equal(old.Root) || !begun.Since.Equal(at) || begun.Other.Equal(old.Root) {
		t.Errorf("after the first step: %+v", begun)
	}
	moved := r.move()
	if moved.Step != authority.StepMoved || !moved.Root.Equal(begun.Other) || !moved.Other.Equal(old.Root) || !moved.Since.IsZero() || !moved.Due.IsZero() {
		t.Errorf("after the second step: %+v", moved)
	}
	at = r.now
	if got := r.confirm(); got.Since.Before(at) || !got.Due.Equal(got.Since.Add(longest)) {
		t.Errorf("after it was confirmed: %+v", got)
	}
	if done := r.finish(); done.Step != authority.StepNone || !done.Root.Equal(begun.Other) {
		t.Errorf("after the last step: %+v", done)
	}
	keys, err := os.ReadFile(filepath.Join(r.dir, "root-key.pem"))
	if err != nil || strings.Count(string(keys), "BEGIN") != 1 {
		t.Errorf("%d keys are left: %v", strings.Count(string(keys), "BEGIN"), err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "rotation.json")); err == nil {
		t.Error("the record of the rotation is left")
	}
	if again := r.begin(); again.Step != authority.StepBegun || again.Other.Equal(old.Root) {
		t.Errorf("the next rotation: %+v", again)
	}
}

// A step that is taken too early, or once more, says so and changes nothing.
func TestAStepOutOfTurnChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	other := authority.Fingerprint(r.state().Root)
	rejected := func(want string, step func() (authority.Rotation, error)) {
		t.Helper()
		before := content(t, r.dir)
		_, err := step()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, not %q", err, want)
		}
		if diff := cmp.Diff(before, content(t, r.dir)); diff != "" {
			t.Errorf("%q changes %s", want, diff)
		}
	}
	begins := func() (authority.Rotation, error) { return authority.BeginRotation(r.dir, r.now) }
	moves := func() (authority.Rotation, error) { return authority.MoveSigning(r.dir, other, r.now) }
	confirms := func() (authority.Rotation, error) {
		return authority.ConfirmSigning(r.dir, authority.Fingerprint(r.state().Root), longest, r.now)
	}
	finishes := func() (authority.Rotation, error) { return authority.FinishRotation(r.dir, r.now) }

	rejected("isthmus ca rotate begin --dir "+r.dir, moves)
	rejected("another root signs by now", confirms)
	rejected("", finishes)
	rejected("expired at", func() (authority.Rotation, error) { return authority.BeginRotation(r.dir, r.now.AddDate(10, 0, 0)) })
	rejected("set the clock", func() (authority.Rotation, error) { return authority.BeginRotation(r.dir, r.now.Add(-time.Hour)) })
	r.begin()
	rejected("", begins)
	rejected("the next root is another one by now", moves)
	rejected("another root signs by now", confirms)
	rejected("isthmus ca rotate sign --dir "+r.dir, finishes)
	r.move()
	rejected("", begins)
	rejected("", func() (authority.Rotation, error) {
		return authority.MoveSigning(r.dir, authority.Fingerprint(r.state().Root), r.now)
	})
	rejected("it is not known yet that every Isthmus signs with the new root", finishes)
	due := r.confirm().Due
	rejected("", confirms)
	rejected("valid until "+due.Format(time.RFC3339), func() (authority.Rotation, error) {
		return authority.FinishRotation(r.dir, due.Add(-time.Second))
	})
	rejected("valid until "+due.Format(time.RFC3339), func() (authority.Rotation, error) {
		return authority.FinishRotation(r.dir, due.Add(-1000*time.Hour)) // the clock was set back
	})
	if state, err := authority.FinishRotation(r.dir, due); err != nil || state.Step != authority.StepNone {
		t.Errorf("%+v, %v", state, err)
	}
}

// model is a folder with its clients. Its steps are interrupted at random.
type model struct {
	rapid   *rapid.T
	dir     string
	away    string // the folder of the key of the root while it is moved away
	now     time.Time
	trusted []*x509.Certificate   // by each client: the roots that it has acknowledged
	issued  [][]*x509.Certificate // chains
}

// files are replaced by steps, each at most once by a step.
var files = []string{"root-key.pem", "root.pem", "issuer.pem", "cross.pem", "rotation.json"}

// interrupted takes a step that ends before one of the files is replaced, as if the machine
// had failed.
func (m *model) interrupted(step func()) {
	file := rapid.SampledFrom(append([]string{""}, files...)).Draw(m.rapid, "before")
	if file != "" {
		half := filepath.Join(m.dir, "."+file+".new")
		if err := os.MkdirAll(filepath.Join(half, "full"), 0o700); err != nil {
			m.rapid.Fatal(err)
		}
		defer os.RemoveAll(half)
	}
	step()
}

func (m *model) state() authority.Rotation {
	state, err := authority.RotationOf(m.dir)
	if err != nil {
		m.rapid.Fatal(err)
	}
	return state
}

// sign moves signing once every client trusts the next root, and confirms it.
func (m *model) sign() {
	state := m.state()
	if state.Step == authority.StepBegun && verify([]*x509.Certificate{state.Other}, state.Other.NotBefore, m.trusted...) == nil {
		_, _ = authority.MoveSigning(m.dir, authority.Fingerprint(state.Other), m.now)
	}
	if state = m.state(); state.Step == authority.StepMoved {
		_, _ = authority.MoveSigning(m.dir, authority.Fingerprint(state.Root), m.now) // again, as the command does
		_, _ = authority.ConfirmSigning(m.dir, authority.Fingerprint(state.Root), longest, m.now)
	}
}

// check expects that the folder can be used, that all clients accept new certificates, and
// that a client of now accepts each certificate that has not expired.
func (m *model) check() {
	a, err := authority.Open(m.dir)
	if err != nil {
		m.rapid.Fatal(err)
	}
	chain, err := a.Sign(web, publicKeyOf(m.rapid), m.now, longest)
	if err != nil {
		m.rapid.Fatal(err)
	}
	leaf := certificates(m.rapid, chain)
	if err := verify(leaf, m.now, m.trusted...); err != nil {
		m.rapid.Fatalf("a client does not accept a new certificate: %v", err)
	}
	m.issued = append(m.issued, leaf)
	roots := certificates(m.rapid, a.Issuer(longest).Bundle().Authorities)
	for _, one := range m.issued {
		if m.now.After(one[0].NotAfter) {
			continue
		}
		if err := verify(one, m.now, roots...); err != nil {
			m.rapid.Fatalf("a certificate is valid until %s, and it is %s: %v", one[0].NotAfter, m.now, err)
		}
	}
}

// move moves the key of the root away, or back. A folder without an issuing certificate needs it.
func (m *model) move() {
	here, away := filepath.Join(m.dir, "root-key.pem"), filepath.Join(m.away, "root-key.pem")
	if _, err := os.Stat(filepath.Join(m.dir, "issuer.pem")); err != nil {
		return
	}
	if err := os.Rename(here, away); err != nil {
		m.back()
	}
}

// back moves the key of the root back.
func (m *model) back() {
	_ = os.Rename(filepath.Join(m.away, "root-key.pem"), filepath.Join(m.dir, "root-key.pem"))
}

// However often the steps are interrupted and repeated, the authority can be used, no call
// fails, and the rotation can be finished: with an issuing certificate, which is renewed in between,
// without one, and while the key of the root is elsewhere.
func TestAnInterruptedRotationFailsNoClient(t *testing.T) {
	t.Parallel()
	_, template := create(t)
	made := content(t, template)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{rapid: rt, dir: t.TempDir(), away: t.TempDir(), now: begin()}
		earlier := rapid.Bool().Draw(rt, "a folder of an earlier version")
		for name, text := range made {
			if earlier && name == "issuer.pem" {
				continue
			}
			if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		acknowledge := func() {
			a, err := authority.Open(m.dir)
			if err != nil {
				rt.Fatal(err)
			}
			m.trusted = certificates(rt, a.Issuer(longest).Bundle().Authorities)
		}
		acknowledge()
		steps := map[string]func(){
			"begin":       func() { _, _ = authority.BeginRotation(m.dir, m.now) },
			"sign":        m.sign,
			"finish":      func() { _, _ = authority.FinishRotation(m.dir, m.now) },
			"acknowledge": acknowledge,
			"issuer":      func() { _, _ = authority.RenewIssuing(m.dir, "", authority.LongestIssuing, m.now) },
			"move":        m.move,
			"wait":        func() { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour) },
		}
		names := slices.Sorted(maps.Keys(steps))
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			m.interrupted(steps[rapid.SampledFrom(names).Draw(rt, "step")])
			m.check()
		}
		m.back()
		if _, err := authority.BeginRotation(m.dir, m.now); err != nil {
			rt.Fatal(err)
		}
		acknowledge()
		m.sign()
		m.now = m.now.Add(2 * longest)
		if state, err := authority.FinishRotation(m.dir, m.now); err != nil || state.Step != authority.StepNone {
			rt.Fatalf("%+v, %v", state, err)
		}
		m.check()
		if text, err := os.ReadFile(filepath.Join(m.dir, "root-key.pem")); err != nil || strings.Count(string(text), "BEGIN") != 1 {
			rt.Fatalf("keys are left: %v", err)
		}
	})
}

func publicKeyOf(t *rapid.T) any {
	key, err := newKey(elliptic.P256())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A client that has only the root before verifies a listener, until the next rotation.
func TestAListenerIsVerifiedByTheRootBefore(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	mustVerify := func(when string, trusted ...*x509.Certificate) {
		t.Helper()
		a, err := authority.Open(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := a.Issuer(longest).IssueServer(serverNames, r.now)
		if err != nil {
			t.Fatal(err)
		}
		var chain []*x509.Certificate
		for _, der := range pair.Certificate {
			one, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, one)
		}
		for _, root := range trusted {
			if err := verify(chain, r.now, root); err != nil {
				t.Errorf("%s, a client of the root of %s: %v", when, root.NotBefore, err)
			}
		}
	}
	old := r.state().Root
	next := r.begin().Other
	mustVerify("after begin", old)
	r.move()
	mustVerify("after sign", old, next)
	r.confirm()
	r.finish()
	mustVerify("after finish", old, next)
	third := r.begin().Other
	mustVerify("after the second begin", old, next)
	r.move()
	mustVerify("after the second sign", next, third)
}

// A chain with the cross certificate is verified by clients of either root, also after the old
// root has left.
func TestAChainEndsInEitherRoot(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	old := r.state().Root
	chain := func() []*x509.Certificate {
		a, err := authority.Open(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := a.Sign(web, publicKey(t, elliptic.P256()), r.now, longest)
		if err != nil {
			t.Fatal(err)
		}
		return certificates(t, append(leaf, a.Cross()...))
	}
	next := r.begin().Other
	if before := chain(); len(before) != 2 || verify(before, r.now, old) != nil || verify(before, r.now, next) == nil {
		t.Errorf("before the new root signs there are %d certificates", len(before))
	}
	r.move()
	for _, when := range []string{"while both are trusted", "after the end"} {
		one := chain()
		if len(one) != 3 || !slices.Equal(one[2].AuthorityKeyId, old.SubjectKeyId) || one[2].Subject.String() != next.Subject.String() || one[2].NotAfter.After(old.NotAfter) {
			t.Fatalf("%s: %d certificates", when, len(one))
		}
		for name, trusted := range map[string][]*x509.Certificate{"old": {old}, "new": {next}, "both": {old, next}} {
			if err := verify(one, r.now, trusted...); err != nil {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
		if verify(one[:2], r.now, old) == nil {
			t.Errorf("%s: the old root has signed", when)
		}
		if when == "while both are trusted" {
			r.confirm()
			r.finish()
		}
	}
}

// After a rotation the cross certificate is of use to old clients alone, and may be removed.
func TestADamagedCrossAfterARotationMayBeRemoved(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	r.begin()
	r.move()
	r.confirm()
	r.finish()
	path := filepath.Join(r.dir, "cross.pem")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(r.dir); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "or remove it") {
		t.Errorf("a damaged one: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(r.dir); err != nil {
		t.Error(err)
	}
}

// The second step, repeated, makes a lost cross certificate and a lost record anew.
func TestLostFilesOfARotationAreMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	r.begin()
	state := r.move()
	r.confirm()
	for file, damage := range map[string]string{"cross.pem": "", "rotation.json": "{"} {
		path := filepath.Join(r.dir, file)
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := authority.Open(r.dir)
		if file == "rotation.json" {
			_, err = authority.RotationOf(r.dir)
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "isthmus ca rotate sign") {
			t.Errorf("a damaged %s: %v", file, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := authority.MoveSigning(r.dir, authority.Fingerprint(state.Root), r.now); err != nil {
			t.Fatal(err)
		}
		r.confirm()
		if _, err := authority.Open(r.dir); err != nil {
			t.Error(err)
		}
	}
}

func TestDamagedRootsAreNamed(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	r.begin()
	r.move()
	fine, foreign := content(t, r.dir), content(t, newRotated(t).dir)
	first := strings.SplitAfter(fine["root.pem"], "-----END CERTIFICATE-----\n")[0]
	for name, test := range map[string]struct{ file, text, want string }{
		"a cut root":       {"root.pem", fine["root.pem"][:len(fine["root.pem"])-100], "is not the root of a trust domain"},
		"a damaged first":  {"root.pem", strings.Replace(fine["root.pem"], "MII", "!!!", 1), "is not the root of a trust domain"},
		"three roots":      {"root.pem", fine["root.pem"] + foreign["root.pem"], "at most two"},
		"a root twice":     {"root.pem", first + first, "two roots of one key"},
		"a cut key":        {"root-key.pem", fine["root-key.pem"][:len(fine["root-key.pem"])-50], "is not a private key"},
		"another's key":    {"root-key.pem", foreign["root-key.pem"], "restore both from the same backup"},
		"another's cross":  {"cross.pem", foreign["root.pem"], "another key than the root"},
		"a cut cross":      {"cross.pem", fine["cross.pem"][:100], "it is damaged"},
		"a cross too many": {"cross.pem", fine["cross.pem"] + fine["cross.pem"], "2 certificates instead of one"},
	} {
		path := filepath.Join(r.dir, test.file)
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := authority.Open(r.dir); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(path, []byte(fine[test.file]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := authority.Open(r.dir); err != nil {
		t.Error(err)
	}
}

// Of commands at once, one takes the step.
func TestStepsAtOnceAreTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	var found sync.Map
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			state, err := authority.BeginRotation(r.dir, r.now)
			if err != nil {
				t.Error(err)
				return
			}
			found.Store(authority.Fingerprint(state.Other), nil)
		})
	}
	all.Wait()
	n := 0
	found.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("there were %d next roots", n)
	}
}

// A rotation changes neither tokens nor revocations.
func TestTokensOutliveARotation(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	a, err := authority.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := issueAt(t, a, authority.Grant{TTL: 1000 * time.Hour}, begin())
	gone, entry := issueAt(t, a, authority.Grant{TTL: 1000 * time.Hour}, begin())
	if _, err := a.RevokeToken(entry.ID, begin()); err != nil {
		t.Fatal(err)
	}
	r.begin()
	r.move()
	r.confirm()
	r.finish()
	if p, err := proves(t, r.dir, kept, "10.0.0.9"); err != nil || p.ID != web {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := proves(t, r.dir, gone, "10.0.0.9"); err == nil {
		t.Error("a revoked token is accepted")
	}
}

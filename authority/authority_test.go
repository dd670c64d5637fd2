package authority_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

// begin is when the authorities of these tests are made.
func begin() time.Time { return time.Now().Truncate(time.Second) }

func domain(t *testing.T) spiffeid.TrustDomain {
	t.Helper()
	d, err := authority.TrustDomain("cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// create makes an authority in a new folder.
func create(t *testing.T) (*authority.Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := authority.Create(dir, domain(t), begin())
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// earlier makes a folder one of an earlier version, without an issuing certificate.
func earlier(t *testing.T, dir string) *authority.Authority {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "issuer.pem")); err != nil {
		t.Fatal(err)
	}
	a, err := authority.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// content returns the files of a folder.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "lock" || entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, os.ErrNotExist) { // a link to nothing
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

// A file that another user can have put into the folder becomes no part of an authority.
func TestAPlantedFileIsNotTaken(t *testing.T) {
	t.Parallel()
	_, whole := create(t)
	files := content(t, whole)
	for name, plant := range map[string]func(dir, file string){
		"in a folder that others can write": func(dir, _ string) {
			chmod(t, dir, 0o777)
		},
		"below such a folder": func(dir, _ string) {
			chmod(t, filepath.Dir(dir), 0o777)
		},
		"that others can write": func(_, file string) {
			chmod(t, file, 0o646)
		},
		"that is a link into a folder of others": func(_, file string) {
			away := filepath.Join(t.TempDir(), "away")
			if err := errors.Join(os.Rename(file, away), os.Symlink(away, file)); err != nil {
				t.Fatal(err)
			}
			chmod(t, filepath.Dir(away), 0o777)
		},
	} {
		for _, planted := range []string{"root-key.pem", "issuer.pem", "token-key.pem", "tokens.json"} {
			dir := filepath.Join(t.TempDir(), "ca")
			path := filepath.Join(dir, planted)
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte(files[planted]), 0o600)); err != nil {
				t.Fatal(err)
			}
			plant(dir, path)
			_, err := authority.Create(dir, domain(t), begin())
			if err == nil || !strings.Contains(err.Error(), "another user can have put "+path+" there, and it is not taken; remove the files") || !strings.Contains(err.Error(), ": chmod ") {
				t.Errorf("%s %s: %v", planted, name, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "root.pem")); err == nil {
				t.Errorf("%s %s: there is an authority", planted, name)
			}
			chmod(t, filepath.Dir(dir), 0o700)
			chmod(t, dir, 0o700)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if _, err := authority.Create(dir, domain(t), begin()); err != nil {
				t.Errorf("%s %s: once it is removed: %v", planted, name, err)
			}
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestTheRootFollowsTheRulesOfSPIFFE(t *testing.T) {
	t.Parallel()
	at := begin()
	a, _ := create(t)
	root := a.Root()
	if len(root.URIs) != 1 || root.URIs[0].String() != "spiffe://cluster.local" || len(root.DNSNames) != 0 {
		t.Errorf("the names are %v %v", root.URIs, root.DNSNames)
	}
	if root.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || !root.IsCA || !root.BasicConstraintsValid {
		t.Errorf("key usage %b, authority %t", root.KeyUsage, root.IsCA)
	}
	for _, e := range root.Extensions {
		const keyUsage, constraints = "2.5.29.15", "2.5.29.19"
		if id := e.Id.String(); (id == keyUsage || id == constraints) && !e.Critical {
			t.Errorf("extension %s is not critical", id)
		}
	}
	if root.SignatureAlgorithm != x509.ECDSAWithSHA256 || root.Subject.String() != "O=cluster.local" {
		t.Errorf("%s, %s", root.SignatureAlgorithm, root.Subject)
	}
	if early := at.Sub(root.NotBefore); early < time.Minute || early > 2*time.Minute {
		t.Errorf("it is valid %s before it was made", early)
	}
	if until := at.AddDate(10, 0, 0); root.NotAfter.Before(until) || root.NotAfter.After(until.Add(time.Hour)) {
		t.Errorf("it is valid until %s", root.NotAfter)
	}
}

func TestPrivateFilesAreForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	issue(t, a, authority.Grant{})
	id := account(t, a, "web")
	if _, err := a.RevokeAccount(id, begin()); err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{
		".": 0o700, "root.pem": 0o644, "token-keys.json": 0o644,
		"root-key.pem": 0o600, "issuer.pem": 0o600, "token-key.pem": 0o600, "tokens.json": 0o600, "revoked.json": 0o600,
	}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got&^mode != 0 {
			t.Errorf("%s has mode %04o, not %04o", name, got, mode)
		}
	}
	if found := secretfile.Warnings(authority.Secrets(dir)...); len(found) != 0 {
		t.Errorf("a new authority has warnings: %q", found)
	}
	for name, mode := range map[string]os.FileMode{".": 0o702, "root-key.pem": 0o644, "issuer.pem": 0o644, "token-key.pem": 0o604, "tokens.json": 0o644, "revoked.json": 0o666} {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if found := secretfile.Warnings(authority.Secrets(dir)...); len(found) != 1 || !strings.Contains(found[0], path) || !strings.Contains(found[0], "chmod") {
			t.Errorf("%s with mode %04o: %q", name, mode, found)
		}
		_ = os.Chmod(path, want[name])
	}
}

// Whatever a loss of power has left of a new authority, the same command finishes it, and
// keeps the files that are there.
func TestAnInterruptedCreationIsFinished(t *testing.T) {
	t.Parallel()
	a, whole := create(t)
	if _, err := a.RevokeAccount(account(t, a, "web"), begin()); err != nil {
		t.Fatal(err)
	}
	files := content(t, whole)
	order := []string{"root-key.pem", "token-key.pem", "token-keys.json", "revoked.json", "issuer.pem", "root.pem"}
	for n := range order {
		dir := t.TempDir()
		for i, name := range order[:n+1] {
			path := filepath.Join(dir, name)
			if i == n { // the last one was not renamed yet, and has a half of its content
				path = filepath.Join(dir, "."+name+".new")
				files[name] = files[name][:len(files[name])/2]
			}
			if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := content(t, dir)
		if _, err := authority.Open(dir); err == nil || !strings.Contains(err.Error(), "isthmus ca init --dir "+dir) {
			t.Errorf("without %s: %v", order[n:], err)
		}
		if _, err := authority.Create(dir, domain(t), begin()); err != nil {
			t.Fatalf("without %s: %v", order[n:], err)
		}
		after := content(t, dir)
		if len(after) != len(order) {
			t.Errorf("without %s: the folder has %d files", order[n:], len(after))
		}
		for _, name := range order[:n] {
			if before[name] != after[name] && name != "issuer.pem" { // it has signed nothing
				t.Errorf("without %s: %s was replaced", order[n:], name)
			}
		}
		files = content(t, whole)
	}
}

func TestCreationChangesNothingThatIsThere(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for name, test := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"an authority":    {write("lock", ""), "has an authority already, of trust domain cluster.local"},
		"a damaged root":  {write("root.pem", "text"), "root.pem is not the root of a trust domain"},
		"files of others": {write("notes.txt", "text"), `has other files, such as "notes.txt"`},
		"a key that is no key": {func(dir string) error {
			return errors.Join(remove("root.pem")(dir), write("root-key.pem", "text")(dir))
		}, "root-key.pem is not a private key"},
	} {
		_, dir := create(t)
		if err := test.change(dir); err != nil {
			t.Fatal(err)
		}
		before := content(t, dir)
		if _, err := authority.Create(dir, domain(t), begin()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, content(t, dir)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := authority.Create(filepath.Join(t.TempDir(), "a", "b"), domain(t), begin()); err == nil || !strings.Contains(err.Error(), "create the folder above it") {
		t.Errorf("a folder below a missing one: %v", err)
	}
}

// An error says which file is at fault, and contains nothing of it.
func TestDamagedFilesAreNamedAndNotQuoted(t *testing.T) {
	t.Parallel()
	_, other := create(t)
	foreign := content(t, other)
	for _, test := range []struct{ file, text, want string }{
		{"root.pem", "", "is not the root of a trust domain"},
		{"root.pem", foreign["root.pem"], "restore both from the same backup"},
		{"root-key.pem", foreign["root-key.pem"], "restore both from the same backup"},
		{"root-key.pem", strings.ReplaceAll(foreign["root-key.pem"], "M", "N"), "is not a private key"},
		{"root-key.pem", foreign["root-key.pem"][:100], "is not a private key"},
		{"issuer.pem", foreign["issuer.pem"], "no root in root.pem has signed it"},
		{"issuer.pem", foreign["issuer.pem"] + foreign["issuer.pem"], "it needs two certificates, each with its key behind it"},
		{"issuer.pem", foreign["issuer.pem"][:1800], "it is damaged"},
		{"issuer.pem", "", "isthmus ca issuer --dir"},
		{"token-key.pem", foreign["token-key.pem"], "restore both from the same backup"},
		{"token-key.pem", "-----BEGIN EC PRIVATE KEY-----", "is not a private key"},
		{"token-keys.json", foreign["token-keys.json"], "restore both from the same backup"},
		{"token-keys.json", `{"keys": []}`, "is not a set of one public key"},
		{"token-keys.json", "{", "is not a set of one public key"},
	} {
		_, dir := create(t)
		if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := authority.Open(dir)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Join(dir, test.file)) {
			t.Errorf("%s with %q: %v", test.file, test.text, err)
			continue
		}
		for line := range strings.Lines(test.text) {
			if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-----") && strings.Contains(err.Error(), line) {
				t.Errorf("%s is quoted: %v", test.file, err)
			}
		}
	}
	for _, name := range []string{"root-key.pem", "token-key.pem", "token-keys.json"} {
		_, dir := create(t)
		if name == "root-key.pem" {
			earlier(t, dir)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := authority.Open(dir); err == nil || !strings.HasSuffix(err.Error(), name+" is missing: restore it from your backup") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestTrustDomainsAreNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "Cluster.local", "spiffe://cluster.local", "spiffe://cluster.local/ns/a", "a/b", "a:1", "a b", ".", "a.", "-a", "10.0.0.1", strings.Repeat("a", 256)} {
		if d, err := authority.TrustDomain(bad); err == nil {
			t.Errorf("%q is trust domain %s", bad, d)
		}
	}
}

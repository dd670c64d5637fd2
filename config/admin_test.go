package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// written loads a configuration from a folder with a certificate and tokens.
func written(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	dir, pair := t.TempDir(), authority.New(t, "ca").Issue("admin")
	for name, text := range map[string][]byte{
		"tls.crt": pair.Cert, "tls.key": pair.Key, "token": []byte("s3cret\n"), "empty": []byte(" \n"), "two": []byte("s3cret words\n"),
		"isthmus.yaml": []byte("sources: [{name: a, file: {path: ./registry}}]\noutputs: {xds: {listen: '127.0.0.1:1'}}\n" + text),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(filepath.Join(dir, "isthmus.yaml"))
}

func TestTokenFileMustHaveAToken(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{"empty": "is empty", "two": "not a single token", "nowhere": "cannot be read"} {
		_, err := written(t, "admin:\n  tokenFile: "+file+"\n")
		if err == nil || !strings.Contains(err.Error(), ":4: admin.tokenFile: ") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", file, err)
		}
	}
	c, err := written(t, "admin: {tokenFile: token}\n")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := c.Admin.Token(); token != "s3cret" || err != nil {
		t.Errorf("the token is %q, %v", token, err)
	}
}

func TestCertificatesOfTheAdminListenerAreLookedAt(t *testing.T) {
	t.Parallel()
	_, err := written(t, "admin:\n  tls:\n    certFile: tls.crt\n    keyFile: none.key\n")
	if err == nil || !strings.Contains(err.Error(), ":6: admin.tls.keyFile: ") {
		t.Errorf("error %v", err)
	}
}

// A listener beyond loopback needs nothing for probes and metrics; what is half
// done, or opens everything, is said.
func TestOpenAndHalfSecuredListenersAreWarnedOf(t *testing.T) {
	t.Parallel()
	const certificate = "tls: {certFile: tls.crt, keyFile: tls.key}"
	for text, want := range map[string]string{
		"listen: ':8080'": "",
		"listen: ':8080', " + certificate + ", tokenFile: token":                   "",
		"listen: '127.0.0.1:8080', insecure: true":                                 "",
		"listen: '[::1]:8080', tokenFile: token":                                   "",
		"listen: ':8080', insecure: true":                                          "INSECURE: admin.insecure",
		"listen: '0.0.0.0:8080', insecure: true, tokenFile: token, " + certificate: "",
		"listen: '0.0.0.0:8080', insecure: true, tokenFile: token":                 "in plain text",
		"listen: 'isthmus:8080', " + certificate:                                   "set admin.tokenFile",
		"listen: ':8080', tokenFile: token":                                        "set admin.tls",
	} {
		c, err := written(t, "admin: {"+text+"}\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := c.Warnings()
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: warnings %q, want %q", text, got, want)
		}
	}
}

func TestPasswordsInPlainTextAreWarnedOf(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte(`
sources:
- name: trusted
  only: {hosts: ["*.sc.example"]}
  servicecenter: {addresses: [http://127.0.0.1:1, http://sc.example:1], username: root, passwordFile: password, insecure: true}
outputs: {xds: {listen: "127.0.0.1:1"}}
`), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := c.Warnings()
	if len(got) != 1 || !slices.ContainsFunc(got, func(w string) bool {
		return strings.HasPrefix(w, "sources[0].servicecenter.addresses[1]: INSECURE: http://sc.example:1 ")
	}) {
		t.Errorf("warnings %q", got)
	}
}

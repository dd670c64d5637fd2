package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/cli"
)

// No command of the authority prints a part of a private key, whatever is wrong with its
// folder. A token is printed once, and stored nowhere.
func TestPrivateKeysArePrintedNowhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ca")
	var all, token bytes.Buffer
	run := func(args ...string) {
		var out bytes.Buffer
		cli.Main(t.Context(), "test", append([]string{"ca"}, args...), nil, &out, &all)
		if args[0] == "token" && strings.HasPrefix(out.String(), "ey") {
			token = out
			return
		}
		all.Write(out.Bytes())
	}
	commands := func() {
		run("init", "--dir", dir, "--trust-domain", "cluster.local")
		run("token", "--dir", dir, "--namespace", "shop", "--account", "web")
		run("show", "--dir", dir)
		run("show", "--dir", dir, "-o", "json")
		run("tokens", "--dir", dir, "-o", "yaml")
		run("revoke", "--dir", dir, "--namespace", "shop", "--account", "cart")
	}
	commands()
	var secrets []string
	for _, name := range []string{"root-key.pem", "token-key.pem"} {
		secrets = append(secrets, secretsOf(t, filepath.Join(dir, name))...)
	}
	for _, name := range []string{"root-key.pem", "token-key.pem", "root.pem", "token-keys.json", "tokens.json", "revoked.json"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(filepath.Join(dir, "root-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		for _, damaged := range [][]byte{whole[:len(whole)/2], bytes.ReplaceAll(key, []byte("PRIVATE"), []byte("EC PRIVATE")), append([]byte(`{"tokens": `), key...)} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			commands()
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if token.Len() == 0 || !strings.Contains(all.String(), "is not a private key") {
		t.Fatalf("the commands print %s", all.String())
	}
	stored, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(secrets, strings.TrimSpace(token.String())) {
		if strings.Contains(all.String(), secret) || strings.Contains(string(stored), secret) {
			t.Errorf("%d characters of a secret are printed or stored", len(secret))
		}
	}
}

// secretsOf returns the texts that would give a private key away.
func secretsOf(t *testing.T, path string) (texts []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := parsed.(*ecdsa.PrivateKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && len(line) > 16 {
			texts = append(texts, line[:16], line)
		}
	}
	texts = texts[1:] // the first characters of the form are the same in every key
	coded := base64.RawURLEncoding.EncodeToString(scalar)
	return append(texts, hex.EncodeToString(scalar), strings.ToUpper(hex.EncodeToString(scalar)), base64.RawStdEncoding.EncodeToString(scalar), coded,
		new(big.Int).SetBytes(scalar).String())
}

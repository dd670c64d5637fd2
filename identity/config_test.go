package identity_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/identity"
)

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	const issuer = `"issuer":"https://a","keysFile":"keys.json"`
	for text, want := range map[string]string{
		`{}`: "", `{"authority":{"dir":"ca","ttl":86400000000000}}`: "", `{"authority":{"dir":"ca"}}`: "authority.ttl: 0s is out of range", `{"jwt":[{` + issuer + `}]}`: "",
		`{"trustDomain":"example.org"}`:                                                             "",
		`{"trustDomainAliases":["old.example"],"trustDomains":{}}`:                                  "",
		`{"trustDomains":{"partner.example":{"namespaces":{"frontend":"shop"}}}}`:                   "",
		`{"trustDomainAliases":["Old"]}`:                                                            `trustDomainAliases[0]: "Old" is not a trust domain`,
		`{"trustDomainAliases":["cluster.local"]}`:                                                  `trustDomainAliases[0]: "cluster.local" is a name of this trust domain already`,
		`{"trustDomainAliases":["old","old"]}`:                                                      `trustDomainAliases[1]: "old" is a name of this trust domain already`,
		`{"trustDomains":{"spiffe://partner.example":{}}}`:                                          "trustDomains.spiffe://partner.example: ",
		`{"trustDomains":{"cluster.local":{}}}`:                                                     "trustDomains.cluster.local: is a name of this trust domain",
		`{"trustDomainAliases":["old"],"trustDomains":{"old":{}}}`:                                  "trustDomains.old: is a name of this trust domain",
		`{"trustDomains":{"partner.example":{"namespaces":{"frontend":"*"}}}}`:                      `trustDomains.partner.example.namespaces.frontend: "*" is not`,
		`{"trustDomains":{"partner.example":{"namespaces":{".":"shop"}}}}`:                          `trustDomains.partner.example.namespaces..: "." is not`,
		`{"jwt":[{"issuer":"https://a","keysURL":"https://a/keys","caFile":"ca","tokenFile":"t"}]}`: "",
		`{"jwt":[{"issuer":"https://a","keysURL":"http://127.0.0.1:8001/keys","tokenFile":"t"}]}`:   "",
		`{"jwt":[{` + issuer + `,"claims":{"namespace":"a","account":"b"},"namespaces":["shop"]}]}`: "",
		`{"trustDomain":"example.org","files":{"dir":"pairs"}}`:                                     "",
		`{"revocations":"revoked.json"}`:                                                            "",
		`{"files":{"dir":"ca"},"authority":{"dir":"ca","ttl":86400000000000}}`:                      "files.dir: is the folder of the authority",

		`{"trustDomain":"Example.org"}`:                                                         "trustDomain: ",
		`{"trustDomain":"spiffe://example.org"}`:                                                "trustDomain: ",
		`{"jwt":[{"keysFile":"k"}]}`:                                                            "jwt[0].issuer: missing",
		`{"jwt":[{"issuer":"https://a"}]}`:                                                      "jwt[0].keysURL: missing",
		`{"jwt":[{` + issuer + `,"keysURL":"https://a"}]}`:                                      "jwt[0].keysURL: keysFile is set as well",
		`{"jwt":[{` + issuer + `,"caFile":"ca"}]}`:                                              "jwt[0].keysFile: caFile and tokenFile",
		`{"jwt":[{` + issuer + `,"tokenFile":"t"}]}`:                                            "jwt[0].keysFile: caFile and tokenFile",
		`{"jwt":[{"issuer":"https://a","keysURL":"http://a/keys"}]}`:                            "jwt[0].keysURL: \"http://a/keys\" is plaintext",
		`{"jwt":[{"issuer":"https://a","keysURL":"http://127.0.0.1.example/keys"}]}`:            "is plaintext",
		`{"jwt":[{"issuer":"https://a","keysURL":"http://127.0.0.1/keys","caFile":"c"}]}`:       "jwt[0].caFile: has no effect",
		`{"jwt":[{"issuer":"https://a","keysURL":"file:///keys"}]}`:                             "jwt[0].keysURL: not a URL such as",
		`{"jwt":[{"issuer":"https://a","keysURL":"keys.json"}]}`:                                "jwt[0].keysURL: not a URL such as",
		`{"jwt":[{"issuer":"https://a","keysURL":"https://me:secret@a"}]}`:                      "jwt[0].keysURL: has a user",
		`{"jwt":[{` + issuer + `},{` + issuer + `}]}`:                                           `jwt[1].issuer: jwt[0] is the issuer "https://a", too`,
		`{"jwt":[{"issuer":"spiffe://cluster.local","keysFile":"k"}],"authority":{"dir":"ca"}}`: `authority.dir: jwt[0] is the issuer "spiffe://cluster.local", too`,
		`{"jwt":[{` + issuer + `,"trustDomain":"A"}]}`:                                          "jwt[0].trustDomain: ",
		`{"jwt":[{` + issuer + `,"claims":{"namespace":"a"}}]}`:                                 "jwt[0].claims.account: missing",
		`{"jwt":[{` + issuer + `,"claims":{"account":"a"}}]}`:                                   "jwt[0].claims.namespace: missing",
		`{"jwt":[{` + issuer + `,"namespaces":["shop","*"]}]}`:                                  "jwt[0].namespaces[1]: ",
	} {
		var c identity.Config
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		err := c.Validate()
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error has the password: %v", text, err)
		}
		if enabled := strings.Contains(text, "jwt") || strings.Contains(text, "authority"); c.Enabled() != enabled {
			t.Errorf("%s is enabled: %t", text, c.Enabled())
		}
		if _, err := identity.New(c, "istio-system", testLog()); want != "" && err == nil {
			t.Errorf("%s: New takes it", text)
		}
	}
}

func TestPathsAreRelativeToTheConfiguration(t *testing.T) {
	t.Parallel()
	c := identity.Config{Revocations: "revoked.json", Files: identity.Files{Dir: "pairs"}, Authority: identity.Authority{Dir: "ca"}, JWT: []identity.Issuer{{KeysFile: "a", CAFile: "../b"}, {TokenFile: "/c"}}}
	c.Resolve("/etc/isthmus")
	want := identity.Config{
		Revocations: "/etc/isthmus/revoked.json", Files: identity.Files{Dir: "/etc/isthmus/pairs"},
		Authority: identity.Authority{Dir: "/etc/isthmus/ca"}, JWT: []identity.Issuer{{KeysFile: "/etc/isthmus/a", CAFile: "/etc/b"}, {TokenFile: "/c"}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestFilesAreChecked(t *testing.T) {
	t.Parallel()
	dir := authority(t)
	good := identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", testKeys().p256)), {Issuer: "b", KeysURL: "https://b"}}, Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	missing, invalid := filepath.Join(dir, "missing"), write(t, filepath.Join(dir, "invalid"), []byte("x"))
	bad := identity.Config{JWT: []identity.Issuer{
		{KeysFile: missing}, {KeysFile: invalid}, {KeysURL: "https://a", CAFile: missing}, {KeysURL: "https://a", CAFile: invalid}, {KeysURL: "https://a", TokenFile: missing},
	}, Authority: identity.Authority{Dir: missing}, Revocations: invalid, Files: identity.Files{Dir: missing}}
	err := bad.Check()
	for _, want := range []string{"jwt[0].keysFile: ", "jwt[1].keysFile: ", "jwt[2].caFile: ", "jwt[3].caFile: ", "jwt[4].tokenFile: ", "authority.dir: ", "revocations: ", "files.dir: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

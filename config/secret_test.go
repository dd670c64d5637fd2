package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/config"
)

// Every file with a secret that a configuration names is looked at, and nothing else.
func TestEverySecretOfAConfigurationIsLookedAt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `
sources:
- name: center
  servicecenter: {addresses: [https://center], username: me, passwordFile: DIR/center-password, tls: {caFile: DIR/public, certFile: DIR/public, keyFile: DIR/center-key}}
- name: cluster
  kubernetes: {kubeconfig: DIR/kubeconfig}
- name: control
  xds: {address: "control:1", tls: {caFile: DIR/public, certFile: DIR/public, keyFile: DIR/xds-key}}
- name: sink
  mcp: {listen: "127.0.0.1:2", tls: {certFile: DIR/public, keyFile: DIR/mcp-key}}
- name: cloud
  azure: {services: [{host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], resources: [/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.Compute/virtualMachines/a]}], credentials: {clientSecret: {tenantId: a, clientId: b, secretFile: DIR/azure-secret}}}
- name: pods
  azure: {services: [{host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], resources: [/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.Compute/virtualMachines/a]}], credentials: {workloadIdentity: {tenantId: a, clientId: b, tokenFile: DIR/azure-token}}}
outputs:
  xds: {listen: "127.0.0.1:3", tls: {certFile: DIR/public, keyFile: DIR/listener-key, clientCAFile: DIR/public}}
  watch: {listen: "127.0.0.1:4", tls: {certFile: DIR/public, keyFile: DIR/watch-key}}
  mcp: {listen: "127.0.0.1:5", tls: {certFile: DIR/public, keyFile: DIR/sinks-key}, sinks: [{address: "sink:6", tls: {certFile: DIR/public, keyFile: DIR/sink-key}}]}
  istio: {kubeconfig: DIR/istio-kubeconfig}
admin: {tls: {certFile: DIR/public, keyFile: DIR/admin-key}, tokenFile: DIR/admin-token}
identity:
  jwt: [{issuer: a, keysURL: "https://keys", tokenFile: DIR/keys-token}]
  authority: {dir: DIR/ca}
  files: {dir: DIR/pairs}
`
	c, problems := config.Parse([]byte(strings.ReplaceAll(text, "DIR", dir)), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	names := regexp.MustCompile(`DIR/([\w-]+)`).FindAllStringSubmatch(text, -1)
	want := map[string]bool{"ca/root-key.pem": true, "ca/token-key.pem": true, "ca/tokens.json": true, "ca/revoked.json": true, "pairs/cart/tls.key": true, "pairs/svid_key.pem": true}
	files := []string{"ca/root.pem", "pairs/cart/tls.crt", "pairs/ca.crt"}
	for _, name := range names {
		if n := name[1]; n != "ca" && n != "pairs" && n != "public" {
			want[n] = true
		}
	}
	for name := range want {
		files = append(files, name)
	}
	for _, name := range append(files, "public") {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	warnings := strings.Join(config.Exposed(c), "\n")
	for name := range want {
		if path := filepath.Join(dir, name); strings.Count(warnings, "other users have access to "+path+" (mode 0644): chmod 600 "+path) != 1 {
			t.Errorf("%s is not reported once", name)
		}
	}
	if got := strings.Count(warnings, "\n") + 1; got != len(want) {
		t.Errorf("%d warnings, want %d:\n%s", got, len(want), warnings)
	}
}

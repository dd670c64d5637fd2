package proxy

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

//go:embed additions.yaml
var additionsText string

// Config is what proxies differ in.
type Config struct {
	Program       string // that of [Fetch]
	Isthmus       string // the program that prints the bootstrap
	Dir           string // where its files are written; it must exist
	Workload      string // its name
	Namespace     string
	IP            string           // its address, as it says; 127.0.0.1 if empty
	Network       string           // that it says it is in
	Delta         bool             // else state of the world
	Workers       int              // threads that take connections; 1 if it is 0
	ControlPlanes []netip.AddrPort // one of them is connected to
	Istiod        bool             // the control plane is istiod, whose listeners are bound on loopback unless connections are redirected
	ClustersOnly  bool             // clusters and endpoints come over ADS, and nothing else does
	Listeners     bool             // listeners and routes come from Isthmus, too, and are bound on loopback
	Redirected    bool             // it is a sidecar to whose ports connections are redirected; in a network namespace of the test's own
	Labels        map[string]string
	Metadata      map[string]string // more of its node's, which istiod reads
	Flags         []string          // more of them for the command that prints the bootstrap
	OnDemand      bool              // clusters are asked for when a request names one, on a stream of their own, and endpoints over ADS
	Unserved      string            // for how long it also waits for what Isthmus does not have: a runtime layer and secrets; empty if it asks for none
	Waits         []Waiting         // listeners of its own; with some, also a cluster that waits without end for the endpoints of a service that there is not
	Without       []string          // extensions of Envoy, as CATEGORY/NAME: it rejects what needs one
	As            *process.User     // who runs it, if that is not the user of the tests
	Drain         time.Duration     // for how long it drains connections; Envoy's own time if it is 0
	Secrets       string            // a folder with certificate.json and authorities.json, for mutual TLS that follows them; empty for plaintext
}

// Waiting is a listener of an Envoy's bootstrap that takes a route configuration over
// ADS, for which it waits without end.
type Waiting struct {
	Port   uint32
	Routes string // the name of the route configuration
}

// writeBootstrap writes Envoy's configuration: what Isthmus prints, changed only
// where its command has no flag.
func (c Config) writeBootstrap(ctx context.Context, path string) error {
	text, err := Print(ctx, c.Isthmus, c.arguments()...)
	if err != nil || !c.ClustersOnly && !c.OnDemand && c.Secrets == "" && c.Metadata == nil {
		return errors.Join(err, os.WriteFile(path, text, 0o600))
	}
	var b struct {
		Admin   any            `json:"admin"`
		Node    map[string]any `json:"node"`
		Dynamic map[string]any `json:"dynamic_resources"`
		Runtime any            `json:"layered_runtime"`
		Static  struct {
			Clusters []map[string]any `json:"clusters"`
		} `json:"static_resources"`
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	for key, value := range c.Metadata {
		b.Node["metadata"].(map[string]any)[key] = value
	}
	if c.OnDemand {
		delete(b.Dynamic, "cds_config")
	}
	if c.ClustersOnly {
		delete(b.Dynamic, "lds_config")
	}
	if c.Secrets != "" {
		b.Static.Clusters[0]["transport_socket"] = c.followed()
	}
	if text, err = json.Marshal(b); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// arguments are those with which Isthmus prints the bootstrap.
func (c Config) arguments() []string {
	arguments := []string{
		"bootstrap", "envoy", "--node", c.Workload, "--namespace", c.Namespace, "--output", "json",
		"--admin-port", "0", fmt.Sprintf("--sotw=%t", !c.Delta),
	}
	for _, at := range c.ControlPlanes {
		arguments = append(arguments, "--address", at.String())
	}
	for name, value := range c.Labels {
		arguments = append(arguments, "--labels", name+"="+value)
	}
	if c.IP != "" {
		arguments = append(arguments, "--ip", c.IP)
	}
	if c.Network != "" {
		arguments = append(arguments, "--network", c.Network)
	}
	arguments = append(arguments, c.Flags...)
	keepalive := "2s"
	if c.Istiod { // which ends a connection on which pings come more often than every 15 s
		keepalive = "60s"
	}
	arguments = append(arguments, "--keepalive", keepalive)
	switch {
	case c.Redirected:
		return arguments
	case c.Listeners, c.Istiod:
		return append(arguments, "--interception", "NONE")
	}
	return append(arguments, "--type", "router") // which has no listeners but its own
}

// Print returns what a command of Isthmus prints.
func Print(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	text, err := exec.CommandContext(ctx, program, arguments...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("isthmus %q: %w: %s", arguments, err, exit.Stderr)
	}
	return text, err
}

// AsksForSecrets reports whether it asks for secrets that Isthmus does not have. State of the
// world has no answer for an Envoy that would wait for them without end.
func (c Config) AsksForSecrets() bool {
	return c.Unserved != "" && (c.Delta || c.Unserved != "0s")
}

// additions is what is merged into the bootstrap.
func (c Config) additions() (string, error) {
	t, err := template.New("additions").Parse(additionsText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, c)
	return b.String(), err
}

// followed is TLS whose files Envoy follows.
func (c Config) followed() any {
	type object = map[string]any
	secret := func(name string) object {
		file := object{"path": c.Secrets + "/" + name + ".json"}
		return object{"name": name, "sds_config": object{"path_config_source": file, "resource_api_version": "V3"}}
	}
	return object{"name": "tls", "typed_config": object{
		"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
		"sni":   "localhost",
		"common_tls_context": object{
			"alpn_protocols":                       []string{"h2"},
			"tls_certificate_sds_secret_configs":   []any{secret("certificate")},
			"validation_context_sds_secret_config": secret("authorities"),
		},
	}}
}

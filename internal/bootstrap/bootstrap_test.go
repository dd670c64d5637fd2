package bootstrap_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/grpc_credential/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/internal/bootstrap"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// settings are what a transcript begins with.
type settings struct {
	For       string // envoy or grpc
	Node      bootstrap.Node
	Server    bootstrap.Server
	SOTW      bool
	AdminPort uint16
	Keepalive string
	Language  string
	Workload  bootstrap.Workload
}

// Each transcript has settings, and the bootstrap that they make or what is wrong
// with them.
func TestBootstraps(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, story *txtar.Archive) *txtar.Archive {
		t.Helper()
		var s settings
		if err := yaml.UnmarshalStrict(story.Files[0].Data, &s); err != nil {
			t.Fatal(err)
		}
		name, text := s.print(t)
		return &txtar.Archive{Comment: story.Comment, Files: []txtar.File{story.Files[0], {Name: name, Data: text}}}
	})
}

// print returns the bootstrap, which has to be one of Envoy by its own schema, or
// the error.
func (s settings) print(t *testing.T) (name string, text []byte) {
	t.Helper()
	var err error
	if s.For == "grpc" {
		var client bootstrap.Client
		if client, err = (bootstrap.GRPC{Node: s.Node, Server: s.Server, Workload: s.Workload, Language: s.Language}).Client(); err == nil {
			text, err = json.MarshalIndent(client, "", "  ")
			name, text = "bootstrap.json", append(text, '\n')
		}
	} else {
		keepalive, wrong := time.ParseDuration(s.Keepalive)
		if wrong != nil {
			t.Fatal(wrong)
		}
		e := bootstrap.Envoy{Node: s.Node, Server: s.Server, SOTW: s.SOTW, AdminPort: s.AdminPort, Keepalive: keepalive}
		if text, err = e.YAML(); err == nil {
			name = "envoy.yaml"
			mustBeEnvoys(t, text)
		}
	}
	if err != nil {
		return "wrong", []byte(err.Error() + "\n")
	}
	return name, text
}

// mustBeEnvoys is that Envoy knows every field, and finds every value valid.
func mustBeEnvoys(t *testing.T, text []byte) {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Error(err)
	}
}

// FuzzEnvoy shows that whatever is asked for, what is printed is a bootstrap, in
// which every text stands where it belongs.
func FuzzEnvoy(f *testing.F) {
	f.Add("web-1", "shop", "10.0.0.7", "127.0.0.1:15010", "/ca.pem", "isthmus", "web", "")
	f.Add("web-1", "shop", "10.0.0.7", "isthmus:15010", "/ca.pem", "", "web", "/token")
	f.Add(`x"}`, "a~b", "::1", "unix:///a: {b}", "/#\n", "spiffe://a/b", "\u2028", "#")
	f.Fuzz(func(t *testing.T, node, namespace, ip, address, file, server, label, token string) {
		text, err := bootstrap.Envoy{
			Node:      bootstrap.Node{Node: node, Namespace: namespace, IPs: []string{ip}, Labels: map[string]string{"app": label}},
			Server:    bootstrap.Server{Addresses: []string{address}, CA: file, Name: server, Token: token},
			Keepalive: bootstrap.MinKeepalive,
		}.YAML()
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "--") {
					t.Errorf("%q does not begin with a flag", line)
				}
			}
			return
		}
		mustBeEnvoys(t, text)
		var got struct {
			Node struct {
				Metadata struct{ Labels, Namespace any }
			}
		}
		if err := yaml.Unmarshal(text, &got); err != nil || label != "" && got.Node.Metadata.Labels == nil {
			t.Errorf("%+v: %v", got, err)
		}
	})
}

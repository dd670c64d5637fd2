package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is a user of the group [Masters], who may do everything.
const (
	Admin   = "admin"
	Masters = "system:masters"
)

// APIServer is a kube-apiserver.
type APIServer struct {
	*Process
	dir          string
	address      string
	loggedBefore int64 // length of the audit log when it was started
}

// auditLog is a file of what was asked for.
const auditLog = "audit.log"

// startAPIServer starts a kube-apiserver that keeps everything in an etcd.
func startAPIServer(ctx context.Context, dir, program, etcd string) (*APIServer, error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	a := &APIServer{dir: dir, address: addresses[0]}
	if err := a.prepare(); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", apiserver, err)
	}
	a.Process = NewProcess(dir, apiserver, program, a.flags(etcd)...)
	err = a.Restart(ctx)
	return a, err
}

// Restart starts the API server again after it was killed, where it was.
func (a *APIServer) Restart(ctx context.Context) error {
	a.loggedBefore = 0
	if log, err := os.Stat(a.file(auditLog)); err == nil {
		a.loggedBefore = log.Size()
	}
	return a.Start(ctx, a.ready)
}

func (a *APIServer) flags(etcd string) []string {
	host, port, _ := strings.Cut(a.address, ":")
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + host, "--secure-port=" + port, "--cert-dir=" + a.dir,
		"--advertise-address=" + host, "--endpoint-reconciler-type=none", // the machine may have no other address
		"--token-auth-file=" + a.file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://" + a.address,
		"--service-account-key-file=" + a.file("sa.key"), "--service-account-signing-key-file=" + a.file("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112", "--disable-admission-plugins=ServiceAccount",
		"--audit-policy-file=" + a.file("audit.yaml"), "--audit-log-path=" + a.file(auditLog),
	}
}

func (a *APIServer) file(name string) string { return filepath.Join(a.dir, name) }

// prepare writes the files that the flags name.
func (a *APIServer) prepare() error {
	key, err := signingKey()
	if err != nil {
		return err
	}
	files := map[string]string{
		"sa.key":     key,
		"tokens.csv": fmt.Sprintf("%s,%s,%s,%q\n", token, Admin, Admin, Masters),
		"audit.yaml": auditPolicy,
	}
	for name, text := range files {
		if err := os.WriteFile(a.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// token is that of [Admin].
const token = "of-a-server-on-loopback"

func signingKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), nil
}

func (a *APIServer) ready(ctx context.Context) error {
	config, err := a.Config(Admin)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return get(ctx, client, "https://"+a.address+"/readyz")
}

// Config is how to reach the API server as a user. Everyone comes as [Admin],
// and other users are impersonated from there.
func (a *APIServer) Config(user string, groups ...string) (*rest.Config, error) {
	return clientcmd.NewDefaultClientConfig(*a.kubeconfig(user, groups), nil).ClientConfig()
}

// WriteKubeconfig writes a file of what [APIServer.Config] says.
func (a *APIServer) WriteKubeconfig(path, user string, groups ...string) error {
	return clientcmd.WriteToFile(*a.kubeconfig(user, groups), path)
}

func (a *APIServer) kubeconfig(user string, groups []string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server: "https://" + a.address,
		// The server writes its own certificate there when it first starts.
		CertificateAuthority: a.file("apiserver.crt"),
	}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	if user != Admin {
		config.AuthInfos["test"].Impersonate = user
		config.AuthInfos["test"].ImpersonateGroups = groups
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	return config
}

// Client speaks with the API server as [Admin]. It leaves no connection behind
// that [Client.Close] does not close.
func (a *APIServer) Client() (*Client, error) {
	config, err := a.Config(Admin)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1 // it is ours alone
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, over)
	return &Client{over, client, fieldManager}, err
}

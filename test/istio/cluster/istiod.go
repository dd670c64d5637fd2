package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
)

// RootNamespace is where istiod lives, and those beside it.
const RootNamespace = "istio-system"

// Istiod is Istio's control plane. It reads the objects of all namespaces.
type Istiod struct {
	*Process
	XDS        string // address, in plain text
	Secure     string // address over TLS; empty without certificates
	Monitoring string // address of its metrics and profiles
	web        string
}

// Certificates are what an istiod shows, and whom it believes, in files of PEM form.
type Certificates struct{ Cert, Key, CA string }

// Setting is what istiods differ in.
type Setting struct {
	Registries   string   // beside Istio's own objects; none if empty
	Mesh         string   // more of its mesh configuration, in YAML
	Env          []string // more of its environment
	Certificates *Certificates
}

// StartIstiod starts an istiod, which ends with the cluster. It sends no filters
// and no certificates that only Istio's own Envoy has.
func (c *Cluster) StartIstiod(ctx context.Context) (*Istiod, error) {
	return c.StartIstiodWith(ctx, "")
}

// StartIstiodWith is StartIstiod with more of its mesh configuration, in YAML, and
// of its environment.
func (c *Cluster) StartIstiodWith(ctx context.Context, mesh string, env ...string) (*Istiod, error) {
	return c.StartIstiodAs(ctx, Setting{Mesh: mesh, Env: env})
}

// StartIstiodAs is StartIstiod with a setting.
func (c *Cluster) StartIstiodAs(ctx context.Context, s Setting) (*Istiod, error) {
	addresses, err := freeAddresses(4)
	if err != nil {
		return nil, err
	}
	i := &Istiod{XDS: addresses[0], web: addresses[1], Monitoring: addresses[2]}
	before := c.add(i)
	name := fmt.Sprintf("%s-%d", istiod, before)
	kubeconfig, config := c.API.file("kubeconfig-"+name), c.API.file(name+".yaml")
	if err := c.API.WriteKubeconfig(kubeconfig, istiod, Masters); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, []byte("enableAutoMtls: false\n"+s.Mesh), 0o600); err != nil {
		return nil, err
	}
	if s.Certificates != nil {
		i.Secure = addresses[3]
	}
	flags := append([]string{
		"discovery", "--registries=" + s.Registries, "--kubeconfig=" + kubeconfig, "--meshConfig=" + config,
		"--grpcAddr=" + i.XDS, "--secureGRPCAddr=" + i.Secure, "--httpAddr=" + i.web, "--httpsAddr=",
		"--monitoringAddr=" + i.Monitoring, "--ctrlz_port=0",
	}, s.Certificates.flags()...)
	i.Process = NewProcess(c.dir, name, c.programs.paths[istiod], flags...)
	i.Env = []string{
		"POD_NAME=istiod-0", "POD_NAMESPACE=" + RootNamespace,
		"ENABLE_CA_SERVER=false", "INJECT_ENABLED=false", "PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false",
	}
	if before > 0 {
		// Several that allot addresses to the same services take each other's, and the
		// pinned istiod panics if an object changes while it repairs that (resolveConflict).
		i.Env = append(i.Env, "PILOT_ENABLE_IP_AUTOALLOCATE=false")
	}
	i.Env = append(i.Env, s.Env...)
	err = i.Restart(ctx)
	return i, err
}

// add has an istiod end with the cluster. It returns how many there were before.
func (c *Cluster) add(i *Istiod) (before int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.istiods = append(c.istiods, i)
	return len(c.istiods) - 1
}

func (c *Certificates) flags() []string {
	if c == nil {
		return nil
	}
	return []string{"--tlsCertFile=" + c.Cert, "--tlsKeyFile=" + c.Key, "--caCertFile=" + c.CA}
}

// Restart starts the istiod again after it was killed, where it was.
func (i *Istiod) Restart(ctx context.Context) error {
	return i.Start(ctx, func(ctx context.Context) error {
		if err := get(ctx, http.DefaultClient, "http://"+i.web+"/ready"); err != nil {
			return err
		}
		for _, address := range []string{i.XDS, i.Secure} { // where it listens a moment after it says that it is ready
			if err := accepts(ctx, address); err != nil {
				return err
			}
		}
		return nil
	})
}

// accepts is that connections are taken at an address, unless that is empty.
func accepts(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

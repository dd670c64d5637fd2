package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// Cluster is an API server that knows Istio's kinds, on an etcd of its own, and
// the istiods that read it, with their Envoys. Tests that run at the same time may start
// these.
type Cluster struct {
	API      *APIServer
	programs *Programs
	dir      string
	etcd     *Process

	mu      sync.Mutex // guards the rest
	istiods []*Istiod
	proxies []*proxy.Proxy
}

// Start starts a cluster without an istiod in an empty folder.
func Start(ctx context.Context, programs *Programs, dir string) (*Cluster, error) {
	c := &Cluster{programs: programs, dir: dir}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	var url string
	if c.etcd, url, err = startEtcd(ctx, c.dir, c.programs.paths[etcd]); err != nil {
		return err
	}
	if c.API, err = startAPIServer(ctx, c.dir, c.programs.paths[apiserver], url); err != nil {
		return err
	}
	client, err := c.API.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Namespace(ctx, RootNamespace); err != nil {
		return err
	}
	return c.define(ctx, client)
}

// define makes Istio's kinds known, and waits until they are served.
func (c *Cluster) define(ctx context.Context, client *Client) error {
	objects, err := istioDefinitions(ctx, filepath.Join(c.programs.Repository, "test", "istio", istiod))
	if err != nil {
		return fmt.Errorf("reading Istio's definitions: %w", err)
	}
	if len(objects) == 0 {
		return errors.New("no definitions were found in the module of Istio")
	}
	for _, object := range objects {
		err := client.Apply(ctx, definitions, object)
		for apierrors.IsTimeout(err) && ctx.Err() == nil { // an API server that has just started may be slow for as long as it lets a request take
			err = client.Apply(ctx, definitions, object)
		}
		if err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := client.awaitServed(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the processes and removes what they stored; what they said stays.
// They are killed: asked to end, an API server waits 20 s for those who watch.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.proxies {
		p.Stop()
	}
	for _, i := range c.istiods {
		if i.Process != nil { // else it did not come to that
			i.Kill()
		}
	}
	if c.API != nil {
		c.API.Kill()
	}
	if c.etcd != nil {
		c.etcd.Kill()
	}
	_ = os.RemoveAll(filepath.Join(c.dir, etcd))
}

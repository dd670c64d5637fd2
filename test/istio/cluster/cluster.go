package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Cluster is an API server that knows Istio's kinds, on an etcd of its own.
type Cluster struct {
	API  *APIServer
	root string
	etcd *Process
	dir  string
	tell io.Writer
}

// Start starts a cluster in an empty folder. What has to be built for it is
// told of.
func Start(ctx context.Context, dir string, tell io.Writer) (*Cluster, error) {
	root, err := repository(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{root: root, dir: dir, tell: tell}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	store, err := build(ctx, c.root, etcd, c.tell)
	if err != nil {
		return err
	}
	server, err := build(ctx, c.root, apiserver, c.tell)
	if err != nil {
		return err
	}
	var url string
	if c.etcd, url, err = startEtcd(ctx, c.dir, store); err != nil {
		return err
	}
	if c.API, err = startAPIServer(ctx, c.dir, server, url); err != nil {
		return err
	}
	return c.define(ctx)
}

// Stop ends the processes and removes what they stored; what they said stays.
// They are killed: asked to end, an API server waits 20 s for those who watch.
func (c *Cluster) Stop() {
	if c.API != nil {
		c.API.Kill()
	}
	if c.etcd != nil {
		c.etcd.Kill()
	}
	_ = os.RemoveAll(filepath.Join(c.dir, etcd))
}

// define makes Istio's kinds known, and waits until they are served.
func (c *Cluster) define(ctx context.Context) error {
	client, err := c.API.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	objects, err := istioDefinitions(ctx, filepath.Join(c.root, "test", "istio", istiod))
	if err != nil {
		return fmt.Errorf("reading Istio's definitions: %w", err)
	}
	for _, object := range objects {
		if err := client.Apply(ctx, definitions, object); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := client.awaitEstablished(ctx, object.GetName()); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return errors.New("no definitions were found in the module of Istio")
	}
	return nil
}

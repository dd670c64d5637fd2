package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
)

// startEtcd starts an etcd and returns its URL.
func startEtcd(ctx context.Context, dir, program string) (*Process, string, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, "", err
	}
	clients, peers := "http://"+addresses[0], "http://"+addresses[1]
	p := NewProcess(dir, etcd, program,
		"--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers,
		"--unsafe-no-fsync", "--log-level=warn")
	ready := func(ctx context.Context) error { return get(ctx, http.DefaultClient, clients+"/readyz") }
	err = p.Start(ctx, ready)
	return p, clients, err
}

// get fails unless the answer is 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true // no connection is left behind
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 10_000))
	if err != nil {
		return err
	}
	return fmt.Errorf("GET %s: %s: %s", url, response.Status, body)
}

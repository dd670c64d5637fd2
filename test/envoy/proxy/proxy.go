// Package proxy runs a released Envoy and reads what it holds from its own admin
// interface. What it should hold is not known here.
//
// The methods of a [Proxy] that read may be used from any goroutine, those that
// start and stop it from one.
package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// Proxy is an Envoy that runs.
type Proxy struct {
	Config
	*process.Process
	Address string // of the listener through which requests go

	admin  string // file that Envoy writes its address to
	client *http.Client
}

// Start starts an Envoy and waits until it is live: it has taken the first
// clusters, with their endpoints.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	if c.As != nil {
		c.Dir = filepath.Join(c.Dir, c.Workload)
		if err := os.Mkdir(c.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	bootstrap := filepath.Join(c.Dir, c.Workload+".json")
	if err := c.writeBootstrap(ctx, bootstrap); err != nil {
		return nil, err
	}
	additions, err := c.additions()
	if err != nil {
		return nil, err
	}
	p := &Proxy{Config: c, admin: filepath.Join(c.Dir, c.Workload+".admin"), client: &http.Client{Transport: &http.Transport{}}}
	arguments := []string{
		"-c", bootstrap, "--config-yaml", additions, "--disable-hot-restart",
		"--concurrency", strconv.Itoa(max(c.Workers, 1)), "-l", "warning", "--admin-address-path", p.admin, "--disable-extensions", strings.Join(c.Without, ","),
	}
	if c.Drain > 0 {
		arguments = append(arguments, "--drain-time-s", strconv.Itoa(int(c.Drain.Seconds())))
	}
	p.Process = process.New(c.Dir, c.Workload, c.Program, arguments...)
	if p.Process.As = c.As; c.As != nil { // who reads the one, and writes into the other
		if err := errors.Join(os.Chown(bootstrap, int(c.As.ID), -1), os.Chown(c.Dir, int(c.As.ID), -1)); err != nil {
			return nil, err
		}
	}
	if err := p.Start(ctx, p.ready); err != nil {
		return nil, err
	}
	return p, nil
}

// Stop ends Envoy and closes the connections to it.
func (p *Proxy) Stop() {
	p.Kill()
	p.client.CloseIdleConnections()
}

func (p *Proxy) ready(ctx context.Context) (err error) {
	if state, err := p.get(ctx, "/ready"); err != nil {
		return fmt.Errorf("it is %q: %w", state, err)
	}
	p.Address, err = p.listener(ctx)
	return err
}

// listener is the address of the listener of the bootstrap; Envoy chose the port.
func (p *Proxy) listener(ctx context.Context) (string, error) {
	var listeners struct {
		Statuses []struct {
			Name  string  `json:"name"`
			Local address `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := p.decode(ctx, "/listeners?format=json", &listeners); err != nil {
		return "", err
	}
	for _, l := range listeners.Statuses {
		if l.Name == "outbound" {
			return net.JoinHostPort(l.Local.Socket.Address, strconv.FormatUint(uint64(l.Local.Socket.Port), 10)), nil
		}
	}
	return "", fmt.Errorf("it has %d listeners, and not its own", len(listeners.Statuses))
}

// Stats are counters and gauges by name, as far as their names match a pattern.
func (p *Proxy) Stats(ctx context.Context, pattern string) (map[string]uint64, error) {
	page, err := p.get(ctx, "/stats?type=All&filter="+pattern)
	if err != nil {
		return nil, err
	}
	stats := map[string]uint64{}
	for line := range strings.Lines(string(page)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			stats[name] = n
		}
	}
	return stats, nil
}

// Deprecated says of what in its configuration Envoy has warned.
func (p *Proxy) Deprecated(ctx context.Context) error {
	const counter = "runtime.deprecated_feature_use"
	stats, err := p.Stats(ctx, "^"+counter+"$")
	if err != nil {
		return err
	}
	uses, found := stats[counter]
	if !found {
		return errors.New("it does not count the use of what is deprecated")
	}
	for line := range strings.Lines(p.Log()) {
		if strings.Contains(strings.ToLower(line), "deprecated") {
			return fmt.Errorf("what is deprecated was used %d times: %.300s", uses, line)
		}
	}
	if uses > 0 {
		return fmt.Errorf("what is deprecated was used %d times", uses)
	}
	return nil
}

// Certificates is what Envoy says of the certificates and authorities it works with.
func (p *Proxy) Certificates(ctx context.Context) (string, error) {
	page, err := p.get(ctx, "/certs")
	return string(page), err
}

// get asks the admin interface.
func (p *Proxy) get(ctx context.Context, path string) ([]byte, error) {
	admin, err := os.ReadFile(p.admin)
	if err != nil {
		return nil, errors.New("it has not written its address yet")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(admin)+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", path, answer.Status, page)
	}
	return page, err
}

func (p *Proxy) decode(ctx context.Context, path string, into any) error {
	page, err := p.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(page, into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

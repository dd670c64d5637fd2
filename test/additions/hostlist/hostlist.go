// Package hostlist is a source of a registry that is a list of lines, served over
// HTTP:
//
//	reviews.example.com 10.0.0.1:9080
//	reviews.example.com 10.0.0.2:9080
//
// It is the worked example of source/README.md, and shows that a registry is one
// folder and one row of the table of kinds.
package hostlist

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Config is what the configuration says of such a registry.
type Config struct {
	URL     string        `json:"url"`
	Poll    time.Duration `json:"poll"`
	Timeout time.Duration `json:"timeout"`
}

var _ source.Settings = (*Config)(nil)

// Kind is the row in the table of kinds.
func Kind() source.Kind {
	return source.Kind{
		Name: "hostlist", MaxBackoff: 10 * time.Second,
		New: func() source.Settings { return &Config{Poll: 5 * time.Second, Timeout: 10 * time.Second} },
	}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" {
		errs = append(errs, fmt.Errorf("url: %q is not a URL such as http://registry.example.com/hosts", c.URL))
	}
	if c.Poll <= 0 {
		errs = append(errs, errors.New("poll: must be more than 0, such as 5s"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, errors.New("timeout: must be more than 0, such as 10s"))
	}
	return errors.Join(errs...)
}

// Resolve implements [source.Settings]: there are no paths.
func (c *Config) Resolve(string) {}

// Check implements [source.Settings]: there are no files.
func (c *Config) Check() error { return nil }

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string { return nil }

// Open implements [source.Settings].
func (c *Config) Open(source.Env) source.Source { return &registry{*c} }

// registry reads one list.
type registry struct{ config Config }

// Run lists the registry again and again. What it cannot read it returns as an
// error: the supervisor shows it, keeps every record, and runs it again.
func (r *registry) Run(ctx context.Context, sink source.Sink) error {
	for {
		listing, err := r.list(ctx)
		if err != nil {
			return err
		}
		if err := sink.Replace(ctx, listing); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.config.Poll):
		case <-sink.Relist():
		}
	}
}

// list reads the whole registry. One that does not answer in time has failed:
// without a bound it would be shown as live for ever.
func (r *registry) list(ctx context.Context) (model.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.config.URL, http.NoBody)
	if err != nil {
		return model.Listing{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return model.Listing{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return model.Listing{}, fmt.Errorf("%s answers %s", r.config.URL, response.Status)
	}
	return parse(response.Body)
}

// parse makes records of lines. A line that does not pass is rejected with its
// number, and the others go on.
func parse(lines io.Reader) (listing model.Listing, err error) {
	var hosts []string
	endpoints := map[string][]model.Record{}
	scanner := bufio.NewScanner(lines)
	for n := 1; scanner.Scan(); n++ {
		host, address, _ := strings.Cut(scanner.Text(), " ")
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			listing.Rejected = append(listing.Rejected, model.Rejection{
				Ref: serviceRef(host), Object: host, Where: fmt.Sprintf("line %d", n), Reason: "write a host, a space, and an address with its port",
			})
			continue
		}
		if endpoints[host] == nil {
			hosts = append(hosts, host)
		}
		endpoints[host] = append(endpoints[host], endpointOf(host, at))
	}
	for _, host := range hosts {
		listing.Objects = append(listing.Objects, model.Object{Record: serviceOf(host), Owned: endpoints[host]})
	}
	return listing, scanner.Err()
}

const namespace = "default"

func serviceRef(host string) model.Ref {
	return model.Ref{Kind: model.KindService, Key: model.Key{Namespace: namespace, Name: host}}
}

func serviceOf(host string) model.Record {
	return model.Record{Ref: serviceRef(host), Spec: model.Service{
		Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}
}

// endpointOf names an endpoint by what it is, so that it keeps its name whatever
// else comes and goes.
func endpointOf(host string, at netip.AddrPort) model.Record {
	return model.Record{
		Ref:  model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: namespace, Name: host + "/" + at.String()}},
		Spec: model.Endpoint{Address: at.Addr().String(), Ports: model.MapOf(map[string]uint32{"http": uint32(at.Port())})},
	}
}

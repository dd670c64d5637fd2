package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
)

// configuration is the file that the demo writes and then serves from, but for
// the entries of the sources.
const configuration = `instance: demo
sources:
%soutputs:
  xds: {listen: 127.0.0.1:0} # 0: any free port
admin: {listen: 127.0.0.1:0}
`

// control is a running Isthmus and a reader of its admin API.
type control struct {
	app   *app.App
	http  *http.Client
	stop  context.CancelFunc
	ended chan struct{}
	err   error // why it ended; to be read after ended is closed
	log   *os.File
}

// startControl runs an Isthmus as isthmus serve would. It outlives ctx until it
// is closed, so that the client can go first.
func startControl(ctx context.Context, dir, version, source string) (*control, error) {
	path := filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, configuration, source), 0o644); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	loaded, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "isthmus.log"))
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	a, err := app.New(ctx, loaded, version, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	c := &control{app: a, http: &http.Client{Transport: &http.Transport{}}, ended: make(chan struct{}), log: log}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() {
		defer close(c.ended)
		c.err = a.Run(running)
	}()
	return c, nil
}

func (c *control) xds() string { return c.app.Addr("xds").String() }

func (c *control) admin() string { return "http://" + c.app.AdminAddr().String() }

func (c *control) close() {
	c.http.CloseIdleConnections()
	c.stop()
	<-c.ended
	_ = c.log.Close()
}

// sources are the registries as the admin API shows them.
func (c *control) sources(ctx context.Context) (list []admin.Source, err error) {
	err = c.get(ctx, "/api/v1/sources", &list)
	return list, err
}

// source is the first registry.
func (c *control) source(ctx context.Context) (admin.Source, error) {
	list, err := c.sources(ctx)
	if err != nil {
		return admin.Source{}, err
	}
	if len(list) == 0 {
		return admin.Source{}, errors.New("the admin API shows no sources")
	}
	return list[0], nil
}

// release releases the held endpoints of a source.
func (c *control) release(ctx context.Context, source string) error {
	var done admin.Release
	return c.ask(ctx, http.MethodPost, "/api/v1/sources/"+url.PathEscape(source)+"/release", &done)
}

// endpoints are the places of a service as the admin API shows them.
func (c *control) endpoints(ctx context.Context, s service) ([]admin.EndpointClaim, error) {
	var list []admin.Service
	if err := c.get(ctx, "/api/v1/services/"+url.PathEscape(s.host()), &list); err != nil {
		return nil, err
	}
	var all []admin.EndpointClaim
	for _, shape := range list {
		all = append(all, shape.Instances...)
	}
	return all, nil
}

// assignments is how the client of a service stands with its load assignment.
func (c *control) assignments(ctx context.Context, s service) (admin.ClientType, error) {
	var list []admin.Client
	if err := c.get(ctx, "/api/v1/clients", &list); err != nil {
		return admin.ClientType{}, err
	}
	for _, client := range list {
		if client.ID != nodeID(s) {
			continue
		}
		for name, t := range client.Types {
			if strings.HasSuffix(name, ".ClusterLoadAssignment") {
				return t, nil
			}
		}
	}
	return admin.ClientType{}, fmt.Errorf("the client %s asks for no load assignment", nodeID(s))
}

func (c *control) get(ctx context.Context, path string, v any) error {
	return c.ask(ctx, http.MethodGet, path, v)
}

func (c *control) ask(ctx context.Context, method, path string, v any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.admin()+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the admin API: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("the admin API answers: %s", strings.TrimSpace(string(text)))
	}
	return json.NewDecoder(response.Body).Decode(v)
}

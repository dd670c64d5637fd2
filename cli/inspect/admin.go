package inspect

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Flags are the flags of commands that use the admin API.
type Flags struct {
	URL                string // where the admin API is, or its host and port
	tokenFile          string
	caFile, serverName string
	Format             term.Format
	timeout            term.Timeout
	watch              bool
}

// Add adds the flags to a command.
func (f *Flags) Add(c *cobra.Command) {
	fromEnv(c, &f.URL, "admin", "ISTHMUS_ADMIN", "http://127.0.0.1:8080", "where the admin API of a running Isthmus is: a URL, or a host and port")
	f.AddAccess(c)
	term.FormatFlag(c, &f.Format)
}

// AddAccess adds the flags that say how the admin API is reached, but not where it is.
func (f *Flags) AddAccess(c *cobra.Command) {
	fromEnv(c, &f.tokenFile, "token-file", "ISTHMUS_ADMIN_TOKEN_FILE", "", "the file with the token that the admin API wants")
	fromEnv(c, &f.caFile, "ca-file", "ISTHMUS_ADMIN_CA_FILE", "", "the authorities of an https admin API, in PEM form; default: the system's")
	fromEnv(c, &f.serverName, "server-name", "ISTHMUS_ADMIN_SERVER_NAME", "", "the name in the certificate of an https admin API; default: that in --admin")
	term.TimeoutFlag(c, &f.timeout, 10*time.Second, "how long to wait for its answer")
}

func fromEnv(c *cobra.Command, target *string, flag, variable, otherwise, usage string) {
	c.Flags().StringVar(target, flag, cmp.Or(os.Getenv(variable), otherwise), usage+" [$"+variable+"]")
}

// At returns the flags for another admin API.
func (f *Flags) At(url string) *Flags {
	other := *f
	other.URL = url
	return &other
}

// Get reads one address of the admin API into v.
func (f *Flags) Get(ctx context.Context, path string, v any) error {
	return f.call(ctx, http.MethodGet, path, nil, v)
}

// Ask sends a question that changes nothing to the admin API, and reads the answer into v.
func (f *Flags) Ask(ctx context.Context, path string, question, v any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return f.call(ctx, http.MethodPost, path, body, v)
}

// post sends a request for an action to the admin API, and reads the result into v.
func (f *Flags) post(ctx context.Context, path string, v any) error {
	return f.call(ctx, http.MethodPost, path, nil, v)
}

// call sends a request. A request for an action has no body.
func (f *Flags) call(ctx context.Context, method, path string, body []byte, v any) error {
	acts := method != http.MethodGet && body == nil
	limited, cancel := context.WithTimeout(ctx, time.Duration(f.timeout))
	defer cancel()
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := f.request(limited, method, path, body)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	switch {
	case err != nil && limited.Err() != nil:
		return term.Wrong(f.cutShort(ctx, acts))
	case isGRPC(response, err):
		if err == nil {
			_ = response.Body.Close()
		}
		return term.Wrong(fmt.Errorf("%s is not an admin API: %w", f.URL, errXDS))
	case err != nil:
		return term.Wrong(fmt.Errorf("no Isthmus answers at %s: %w; start one with 'isthmus serve', or give its admin address with --admin", f.URL, err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return term.Wrong(errors.New(cmp.Or(strings.TrimSpace(string(text)), request.URL.String()+" answers "+response.Status)))
	}
	if err := json.NewDecoder(bounded.Reader(response.Body, "the answer of "+request.URL.String())).Decode(v); err != nil {
		if limited.Err() != nil {
			return term.Wrong(f.cutShort(ctx, acts))
		}
		if large, is := errors.AsType[*bounded.TooLarge](err); is {
			return term.Wrong(fmt.Errorf("%w; check that --admin names the admin address of an Isthmus, or ask for one client or service", large))
		}
		return term.Wrong(fmt.Errorf("%s is not the response of an Isthmus of this version; check that --admin is its admin address, and compare 'isthmus version'", request.URL))
	}
	return nil
}

// cutShort explains why the command stopped waiting for an answer, by the context of the
// command: it was interrupted, or otherwise timed out. Acts is true for a request for an
// action.
func (f *Flags) cutShort(ctx context.Context, acts bool) error {
	undone := "nothing was changed"
	if acts {
		undone = "the request may still take effect: check with 'isthmus sources'"
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted before %s responded; %s", f.URL, undone)
	}
	return fmt.Errorf("%s did not respond within %s; %s; increase --timeout, or check %s/livez",
		f.URL, f.timeout.String(), undone, strings.TrimRight(f.URL, "/"))
}

// request returns a request to a path of the admin API, with the token if there is one.
func (f *Flags) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	base, err := baseOf(f.URL)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base.String(), "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	if f.tokenFile == "" {
		return request, nil
	}
	if base.Scheme == "http" && !loopback.IsHost(base.Hostname()) {
		return nil, fmt.Errorf("--admin %q would receive the token of --token-file in plain text; use https, or kubectl port-forward and http://127.0.0.1:8080", f.URL)
	}
	token, err := config.ReadToken(f.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return request, nil
}

// client returns the HTTP client for the admin API. It follows no redirection, which could
// send a token to an unknown host.
func (f *Flags) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // as net/http documents
	transport.DialContext = dialAdmin
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if f.caFile != "" {
		text, err := bounded.File(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s has no certificate in PEM form", f.caFile)
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}, nil
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// adminFlags are the flags of commands that use the admin API.
type adminFlags struct {
	url    string
	format format
}

func (f *adminFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "admin", "http://127.0.0.1:8080", "where the admin API of a running Isthmus is")
	formatFlag(c, &f.format)
}

// get reads one address of the admin API into v.
func (f *adminFlags) get(ctx context.Context, path string, v any) error {
	return f.call(ctx, http.MethodGet, path, v)
}

// post has the admin API do something, and reads what came of it into v.
func (f *adminFlags) post(ctx context.Context, path string, v any) error {
	return f.call(ctx, http.MethodPost, path, v)
}

func (f *adminFlags) call(ctx context.Context, method, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	base, err := url.Parse(f.url)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return fmt.Errorf("--admin %q is not a URL such as http://127.0.0.1:8080", f.url)
	}
	address := strings.TrimRight(f.url, "/") + path
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return wrong{fmt.Errorf("no Isthmus answers at %s: %w; start one with 'isthmus serve', or say where it is with --admin", f.url, err)}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return wrong{fmt.Errorf("%s", strings.TrimSpace(string(text)))}
	}
	if err := json.NewDecoder(response.Body).Decode(v); err != nil {
		return wrong{fmt.Errorf("%s does not answer as an Isthmus does: %w", address, err)}
	}
	return nil
}

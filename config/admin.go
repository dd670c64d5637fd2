package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Admin is the operator's HTTP interface.
type Admin struct {
	Listen string `json:"listen"`
	// AllowedHosts are names, with a port or without, by which requests may call it, beside
	// the names of loopback.
	AllowedHosts []string `json:"allowedHosts"`
	// TLS is disabled while it is empty.
	TLS AdminTLS `json:"tls"`
	// TokenFile, if set, has the token that requests must bear.
	TokenFile string `json:"tokenFile"`
	// Insecure admits requests from beyond loopback without TLS.
	Insecure bool `json:"insecure"`
}

// AdminTLS is the listener's certificate.
type AdminTLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// Validate reports faults in the configuration itself, with their fields. It does not read
// the disk.
func (a Admin) Validate() error {
	var errs []error
	if err := loopback.ValidListen(a.Listen); err != nil {
		errs = append(errs, fmt.Errorf("listen: %w, such as 127.0.0.1:8080", err))
	}
	for i, host := range a.AllowedHosts {
		if !isHost(host) {
			errs = append(errs, fmt.Errorf("allowedHosts[%d]: %q is not a host such as isthmus.example.com, with or without a port; wildcards are not allowed", i, host))
		}
	}
	switch {
	case a.TLS.CertFile == "" && a.TLS.KeyFile != "":
		errs = append(errs, errors.New("tls.certFile: missing, although keyFile is set; give the path of the server certificate"))
	case a.TLS.CertFile != "" && a.TLS.KeyFile == "":
		errs = append(errs, errors.New("tls.keyFile: missing, although certFile is set; give the path of the private key"))
	}
	return errors.Join(errs...)
}

// isHost reports whether a text is a host of a URL and nothing else.
func isHost(host string) bool {
	u, err := url.Parse("http://" + host)
	return err == nil && u.Host == host && u.Hostname() != "" && !strings.ContainsAny(host, "*, ")
}

// Check reports faults of the files that the configuration names, with their fields.
func (a Admin) Check() error {
	_, err := a.Certificates(nil)
	if a.TokenFile == "" {
		return err
	}
	_, missing := a.Token()
	return errors.Join(err, missing)
}

// Certificates returns the keeper of the listener's files; nil without TLS. It fails if the
// files cannot be used, with the field at fault.
func (a Admin) Certificates(log *slog.Logger) (*certs.Keeper, error) {
	if a.TLS == (AdminTLS{}) {
		return nil, nil
	}
	keeper, err := certs.New(certs.Files{CertFile: a.TLS.CertFile, KeyFile: a.TLS.KeyFile}, log)
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	return keeper, nil
}

// Token reads the current token. The error has the field, and nothing of the file's
// content.
func (a Admin) Token() (string, error) {
	token, err := ReadToken(a.TokenFile)
	if err != nil {
		return "", fmt.Errorf("tokenFile: %w", err)
	}
	return token, nil
}

// longestToken is more than the size of a header.
const longestToken = 64 << 10

// ReadToken reads a file that contains only a token and white space around it.
func ReadToken(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // it is the operator who names it
	if err != nil {
		return "", fmt.Errorf("%q cannot be read: %w; give the path of a readable file with the token", path, cause(err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longestToken+1))
	if err != nil {
		return "", fmt.Errorf("%q cannot be read: %w; give the path of a readable file with the token", path, cause(err))
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return "", fmt.Errorf("%q is empty; write a token into it, such as the output of: openssl rand -hex 32", path)
	case len(text) > longestToken || bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%q is not a single token: use letters, digits and punctuation without white space, such as the output of: openssl rand -hex 32", path)
	}
	return string(text), nil
}

// resolve makes relative paths start from a folder.
func (a *Admin) resolve(dir string) {
	for _, path := range []*string{&a.TLS.CertFile, &a.TLS.KeyFile, &a.TokenFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Warnings lists the risks of a listener before it is used.
func (a Admin) Warnings() []string {
	secured, proven := a.TLS != (AdminTLS{}), a.TokenFile != ""
	const half = "%s without %s: beyond loopback only probes and metrics are answered; set %[2]s to have the rest answered as well"
	switch {
	case loopback.IsListen(a.Listen), secured && proven:
		return nil
	case a.Insecure && proven:
		return []string{"INSECURE: admin.insecure has tokens sent to " + a.Listen + " in plain text, and whoever is on the way can read and use them; set admin.tls"}
	case a.Insecure:
		return []string{"INSECURE: admin.insecure lets whoever reaches " + a.Listen + " read everything and release what a source holds; set admin.tls and admin.tokenFile"}
	case secured:
		return []string{fmt.Sprintf(half, "admin.tls", "admin.tokenFile")}
	case proven:
		return []string{fmt.Sprintf(half, "admin.tokenFile", "admin.tls")}
	default:
		return nil
	}
}

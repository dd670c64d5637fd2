package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// endpoint is a URL with a key set. Its files are read for each request, so that they may
// be rotated.
type endpoint struct{ url, caFile, tokenFile string }

var _ fetcher = endpoint{}

func (i *Issuer) remote() endpoint { return endpoint{i.KeysURL, i.CAFile, i.TokenFile} }

// mostSecret bounds the bytes of a file with authorities or a token.
const mostSecret = 1 << 20

// secrets reads the authorities, nil for the machine's, and the token, empty without one.
func (e endpoint) secrets() (authorities *x509.CertPool, token string, err error) {
	if e.caFile != "" {
		text, err := readBounded(e.caFile, mostSecret)
		if err != nil {
			return nil, "", fmt.Errorf("caFile: %w", err)
		}
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(text) {
			return nil, "", fmt.Errorf("caFile: %s: no certificate in PEM form", e.caFile)
		}
	}
	if e.tokenFile != "" {
		text, err := readBounded(e.tokenFile, mostSecret)
		if err != nil {
			return nil, "", fmt.Errorf("tokenFile: %w", err)
		}
		token = string(bytes.TrimSpace(text))
	}
	return authorities, token, nil
}

// fetch implements fetcher.
func (e endpoint) fetch(ctx context.Context) ([]byte, error) {
	authorities, token, err := e.secrets()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: sameHost}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: the answer is %s and not 200", e.url, clip(response.Status))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostKeysText+1))
	if err == nil && len(text) > mostKeysText {
		err = fmt.Errorf("GET %s: the answer is larger than %d bytes, the limit of a key set", e.url, mostKeysText)
	}
	return text, err
}

// sameHost follows few redirects, and none to another host, port or scheme.
func sameHost(next *http.Request, before []*http.Request) error {
	const most = 3
	first := before[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return fmt.Errorf("it redirects to another place, %s; set keysURL to the place of the keys", clip(next.URL.Redacted()))
	}
	if len(before) > most {
		return errors.New("it redirects without end; set keysURL to the place of the keys")
	}
	return nil
}

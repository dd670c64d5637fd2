package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Files are PEM files.
type Files struct {
	// CertFile and KeyFile are empty if Issuer issues the certificate.
	CertFile, KeyFile string
	Issuer            Issuer
	Names             []string // of the certificate that Issuer issues: DNS names and IP addresses
	// ClientCAFile is optional. With it, clients must show a certificate that
	// one of the authorities in it has signed. Without it, Issuer has the authorities, if
	// there is an Issuer.
	ClientCAFile string
	// Domains are the files of the authorities of other trust domains, by their names. They vouch for
	// these alone, and the other authorities for none of these.
	Domains map[string]string
	// Optional lets clients without a certificate in, too.
	Optional bool
}

// FileError is the fault of a file.
type FileError struct {
	Field  string // "certFile", "keyFile" or "clientCAFile"
	Reason string // the fault and how to fix it
}

// Error implements error.
func (e *FileError) Error() string { return e.Field + ": " + e.Reason }

// content is the text of the files; clientCA is nil without authorities of clients. The
// domains are in the order of their names. The signer is that of Issuer.
type content struct {
	cert, key, clientCA []byte
	domains             [][]byte
	signer              string
}

func (c content) equal(o content) bool {
	return bytes.Equal(c.cert, o.cert) && bytes.Equal(c.key, o.key) && bytes.Equal(c.clientCA, o.clientCA) && slices.EqualFunc(c.domains, o.domains, bytes.Equal) && c.signer == o.signer
}

// read reads the files.
func (f Files) read() (c content, err error) {
	if f.Issuer != nil {
		c.signer, c.clientCA = f.Issuer.Signer(), f.Issuer.Authorities()
	} else {
		if c.cert, err = readFile("certFile", f.CertFile); err != nil {
			return content{}, err
		}
		if c.key, err = readFile("keyFile", f.KeyFile); err != nil {
			return content{}, err
		}
	}
	if f.ClientCAFile != "" {
		if c.clientCA, err = readFile("clientCAFile", f.ClientCAFile); err != nil {
			return content{}, err
		}
	}
	for _, domain := range f.domains() {
		text, _ := readFile("clientCAFile", f.Domains[domain]) // nothing is no certificate either
		c.domains = append(c.domains, text)
	}
	return c, nil
}

// largest is far more than the size of any valid file.
const largest = 4 << 20

func readFile(field, path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // it is the operator who names it
	if err != nil {
		return nil, &FileError{field, fmt.Sprintf("%q cannot be read: %v; create it, or name another", path, cause(err))}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err != nil {
		return nil, &FileError{field, fmt.Sprintf("%q cannot be read: %v; create it, or name another", path, cause(err))}
	}
	if len(text) > largest {
		return nil, &FileError{field, fmt.Sprintf("%q is larger than %d bytes; name a file in PEM form", path, largest)}
	}
	return text, nil
}

// parse converts the content of files into a listener's configuration, and the authorities of
// clients, which are nil if no client certificates are taken.
func (f Files) parse(c content, now time.Time) (*tls.Config, *Authorities, error) {
	pair, err := f.pair(c, now)
	if err != nil {
		return nil, nil, err
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2"},
		// A resumed session would rely on a verification under the previous files.
		SessionTicketsDisabled: true,
	}
	if f.ClientCAFile == "" && f.Issuer == nil {
		return config, nil, nil
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if f.Optional {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	clients, all := &Authorities{Domains: map[string]*x509.CertPool{}}, x509.NewCertPool()
	if clients.Own, err = poolOf(f.ClientCAFile, c.clientCA, all); err != nil {
		return nil, nil, err
	}
	for i, domain := range f.domains() {
		if clients.Domains[domain], err = poolOf(f.Domains[domain], c.domains[i], all); err != nil {
			return nil, nil, err
		}
	}
	clients.demand(config, all)
	return config, clients, nil
}

// poolOf returns the authorities in the content of a file, and adds them to all.
func poolOf(path string, text []byte, all *x509.CertPool) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, &FileError{"clientCAFile", fmt.Sprintf("%q holds no certificate in PEM form", path)}
	}
	all.AppendCertsFromPEM(text)
	return pool, nil
}

// pair returns the certificate with its key.
func (f Files) pair(c content, now time.Time) (tls.Certificate, error) {
	if f.Issuer != nil {
		return f.issue(now)
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return pair, f.whose(c, err)
	}
	return pair, nil
}

// whose returns the file at fault when certificate and key do not match.
func (f Files) whose(c content, err error) error {
	if !holdsCertificate(c.cert) {
		return &FileError{"certFile", fmt.Sprintf("%q holds no certificate in PEM form", f.CertFile)}
	}
	return &FileError{"keyFile", fmt.Sprintf("%q cannot be used with the certificate: %v; name the key that belongs to it, in PEM form and without a password", f.KeyFile, err)}
}

func holdsCertificate(text []byte) bool {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return false
		}
		if block.Type == "CERTIFICATE" {
			_, err := x509.ParseCertificate(block.Bytes)
			return err == nil
		}
	}
}

// cause returns an error of the file system without its path, which the text already has.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

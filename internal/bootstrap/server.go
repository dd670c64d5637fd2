package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Server is a listener of Isthmus, with the credentials to connect to it.
type Server struct {
	// Addresses are the addresses of the output xds: HOST:PORT, or unix:///PATH.
	Addresses []string
	// CA is the file of the authorities of the server's certificate; it enables TLS. Cert and
	// Key are the files of the client's certificate, if the server demands one. The client
	// reads the files, which are in PEM form.
	CA, Cert, Key string
	// Token is the file of the client's bearer token. The client reads it at each new stream,
	// and sends the token over TLS only.
	Token string
	// Name is the expected name in the server's certificate: a DNS name, an IP address or a
	// SPIFFE ID. The default is the host of the address.
	Name string
}

// address is one address of a server.
type address struct {
	Path string // of a unix socket; then the other fields are empty
	Host string
	Port uint16
	ip   bool
}

func (a address) String() string {
	if a.Path != "" {
		return "unix://" + a.Path
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// addresses returns the server's addresses; duplicates are errors.
func (s Server) addresses() (list []address, err error) {
	if len(s.Addresses) == 0 {
		return nil, errors.New("--address: missing; give the host and port of outputs.xds.listen, such as 127.0.0.1:15010")
	}
	var errs []error
	for _, text := range s.Addresses {
		a, err := parseAddress(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--address: %q %w", text, err))
			continue
		}
		if slices.Contains(list, a) {
			errs = append(errs, fmt.Errorf("--address: %q is given twice; remove one", text))
		}
		list = append(list, a)
	}
	return list, errors.Join(errs...)
}

func parseAddress(text string) (address, error) {
	if socket, ok := strings.CutPrefix(text, "unix://"); ok {
		if !path.IsAbs(socket) || !printable(socket) {
			return address{}, errors.New("is not a unix socket with an absolute path; give one such as unix:///run/isthmus/xds.sock")
		}
		return address{Path: socket}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, errors.New("is not a host and port; give one such as 127.0.0.1:15010 or isthmus.istio-system.svc:15010, without http://")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return address{}, fmt.Errorf("contains %q instead of a port from 1 to 65535", port)
	}
	host = strings.ToLower(host)
	a := address{Host: host, Port: uint16(number)}
	switch ip, err := netip.ParseAddr(host); {
	case err == nil && ip.IsUnspecified():
		return address{}, errors.New("is an address to listen on; give one that the client can connect to")
	case err == nil && ip.Zone() == "":
		a.Host, a.ip = ip.String(), true
	case !domain.MatchString(strings.TrimSuffix(host, ".")):
		return address{}, fmt.Errorf("contains %q instead of a DNS name or an IP address", host)
	}
	return a, nil
}

// tls validates the TLS settings, and reports whether the connection uses TLS.
func (s Server) tls() (on bool, err error) {
	var errs []error
	for _, f := range []struct{ flag, file string }{{"--ca", s.CA}, {"--cert", s.Cert}, {"--key", s.Key}, {"--token-file", s.Token}} {
		if !printable(f.file) {
			errs = append(errs, fmt.Errorf("%s: %q is not a file name", f.flag, f.file))
		}
	}
	switch {
	case s.Cert != "" && s.Key == "":
		errs = append(errs, errors.New("--key: missing; --cert needs the key that belongs to the certificate"))
	case s.Cert == "" && s.Key != "":
		errs = append(errs, errors.New("--cert: missing; --key needs the certificate that it belongs to"))
	}
	if s.CA == "" && s.Token != "" {
		errs = append(errs, errors.New("--ca: missing; a token is sent over TLS only, so name the file of the authorities that signed the certificate of Isthmus"))
	} else if s.CA == "" && (s.Cert != "" || s.Name != "") {
		errs = append(errs, errors.New("--ca: missing; name the file of the authorities that signed the certificate of Isthmus; without it, the client cannot verify the server"))
	}
	return s.CA != "", errors.Join(errs...)
}

// printable reports whether a text contains only characters that a file name may contain.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
}

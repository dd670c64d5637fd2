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

// Server is the listener of Isthmus, and how to connect to it.
type Server struct {
	// Addresses are the addresses of its output xds: host and port, or unix:///path.
	Addresses []string
	// CA enables TLS: the file of the authorities of the server's certificate. Cert and Key
	// are the files of the client's own, if the server demands one. All are in PEM form, and
	// read by the client.
	CA, Cert, Key string
	// Name is the name in the server's certificate, if not the host of its address: a DNS
	// name, an address, or a SPIFFE ID.
	Name string
}

// address is a server's address.
type address struct {
	Path string // of a unix socket; the others are empty then
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
			errs = append(errs, fmt.Errorf("--address: %q is given twice; leave one of them away", text))
		}
		list = append(list, a)
	}
	return list, errors.Join(errs...)
}

func parseAddress(text string) (address, error) {
	if socket, ok := strings.CutPrefix(text, "unix://"); ok {
		if !path.IsAbs(socket) || !printable(socket) {
			return address{}, errors.New("is not a unix socket with an absolute path; give such as unix:///run/isthmus/xds.sock")
		}
		return address{Path: socket}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, errors.New("is not a host and port; give such as 127.0.0.1:15010 or isthmus.istio-system.svc:15010, without http://")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return address{}, fmt.Errorf("has %q where a port from 1 to 65535 should be", port)
	}
	host = strings.ToLower(host)
	a := address{Host: host, Port: uint16(number)}
	switch ip, err := netip.ParseAddr(host); {
	case err == nil && ip.IsUnspecified():
		return address{}, errors.New("is one to listen on; give an address that the client can connect to")
	case err == nil && ip.Zone() == "":
		a.Host, a.ip = ip.String(), true
	case !domain.MatchString(strings.TrimSuffix(host, ".")):
		return address{}, fmt.Errorf("has %q where a DNS name or an IP address should be", host)
	}
	return a, nil
}

// tls reports whether the connection uses TLS, and invalid settings of it.
func (s Server) tls() (on bool, err error) {
	var errs []error
	for _, said := range []struct{ flag, file string }{{"--ca", s.CA}, {"--cert", s.Cert}, {"--key", s.Key}} {
		if !printable(said.file) {
			errs = append(errs, fmt.Errorf("%s: %q is not the name of a file", said.flag, said.file))
		}
	}
	switch {
	case s.Cert != "" && s.Key == "":
		errs = append(errs, errors.New("--key: missing; --cert needs the key that belongs to the certificate"))
	case s.Cert == "" && s.Key != "":
		errs = append(errs, errors.New("--cert: missing; --key needs the certificate that it belongs to"))
	}
	if s.CA == "" && (s.Cert != "" || s.Name != "") {
		errs = append(errs, errors.New("--ca: missing; name the file of the authorities of Isthmus' certificate, without which the client could not tell it from anybody else"))
	}
	return s.CA != "", errors.Join(errs...)
}

// printable reports whether a text contains only characters fit for a file name.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
}

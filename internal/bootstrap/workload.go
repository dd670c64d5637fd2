package bootstrap

import (
	"errors"
	"fmt"
)

// Workload is the files by which a client proves itself to other workloads, and verifies them.
// They are in PEM form.
type Workload struct{ Cert, Key, CA string }

// The JSON form of certificate providers, by gRPC's proposal A29.
type (
	provider struct {
		Plugin string   `json:"plugin_name"`
		Config *watched `json:"config"`
	}
	watched struct {
		Cert    string `json:"certificate_file,omitempty"`
		Key     string `json:"private_key_file,omitempty"`
		CA      string `json:"ca_certificate_file,omitempty"`
		Refresh string `json:"refresh_interval"`
	}
)

// refresh is how often gRPC reads the files: often enough for certificates of minutes.
const refresh = "60s"

// providers returns the providers by name; none without files.
func (w Workload) providers() (map[string]provider, error) {
	if w == (Workload{}) {
		return nil, nil
	}
	var errs []error
	for _, f := range []struct{ flag, file string }{{"--workload-cert", w.Cert}, {"--workload-key", w.Key}, {"--workload-ca", w.CA}} {
		if !printable(f.file) {
			errs = append(errs, fmt.Errorf("%s: %q is not a file name", f.flag, f.file))
		}
	}
	switch {
	case w.Cert != "" && w.Key == "":
		errs = append(errs, errors.New("--workload-key: missing; --workload-cert needs the key that belongs to the certificate"))
	case w.Cert == "" && w.Key != "":
		errs = append(errs, errors.New("--workload-cert: missing; --workload-key needs the certificate that it belongs to"))
	}
	return map[string]provider{"default": {"file_watcher", &watched{w.Cert, w.Key, w.CA, refresh}}}, errors.Join(errs...)
}

package xds

import (
	"fmt"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/streams"
)

// Offer is the configuration that a server offers, and its readers.
type Offer struct {
	// Types names the served types, the newest version of each first. Demand, if set, is called
	// when one of them is requested.
	Types  []string
	Demand func()
	// Readers are the clients that may read configuration. Exposed means that the listener can be
	// reached from beyond this machine.
	Readers Readers
	Exposed bool
}

// Readers are the clients that may read the types of configuration.
type Readers string

// The allowed readers. A proven client always needs an identity of the root namespace.
const (
	// Root allows these identities; on a listener of this machine alone also clients without
	// proof. It is the default, also spelled empty.
	Root Readers = "root"
	// Any adds clients without proof on every listener.
	Any Readers = "any"
	// Off allows no client.
	Off Readers = "off"
)

func (r Readers) validate() error {
	if r == "" || r == Root || r == Any || r == Off {
		return nil
	}
	return fmt.Errorf("configuration: %q is none of root, any, off", string(r))
}

// denied returns why a client may not read configuration; nil if it may. A control plane's
// configuration is not for each of its proxies.
func (o *Offer) denied(who streams.Identity) error {
	deny := func(format string, args ...any) error {
		return grpcstatus.Errorf(codes.PermissionDenied, format, args...)
	}
	switch {
	case o.Readers == Off:
		return deny("configuration is served to no client: outputs.xds.configuration is off")
	case !who.Proven() && o.Exposed && o.Readers != Any:
		return deny("configuration needs a client certificate of the root namespace on a listener beyond loopback; set outputs.xds.tls.clientCAFile, or outputs.xds.configuration: any if the network is trusted")
	}
	if err := who.Everything(); err != nil {
		return deny("%v, and configuration is for its identities; give the client one, or have it ask for the types of a proxy", err)
	}
	return nil
}
